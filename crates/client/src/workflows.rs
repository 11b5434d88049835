//! Workflows and their schedules.

use crate::pages::{Pages, filters};
use crate::{ATTEMPTS, Call, Client, Error, Schedule, Workflow};

impl Client {
    /// Stores a definition in YAML or JSON as a new workflow, or as the next version of the one with its name.
    pub async fn define(&self, definition: &str) -> Result<Workflow, Error> {
        self.data(Call::post(&["workflows"]).text(definition).attempts(ATTEMPTS)).await
    }

    /// Stores a definition under a name. One that changed becomes the next version.
    pub async fn define_as(&self, name: &str, definition: &str) -> Result<Workflow, Error> {
        self.data(Call::put(&["workflows", name]).text(definition).attempts(ATTEMPTS)).await
    }

    /// Checks a definition without storing it. If it has faults, the problem lists all of them.
    pub async fn check(&self, definition: &str) -> Result<(), Error> {
        self.execute(Call::post(&["check"]).text(definition).attempts(ATTEMPTS)).await
    }

    /// A workflow, by name or id.
    pub async fn workflow(&self, name: &str) -> Result<Workflow, Error> {
        self.data(Call::get(&["workflows", name]).attempts(ATTEMPTS)).await
    }

    /// All workflows whose name contains `q`, or all of them.
    pub fn workflows(&self, q: Option<&str>) -> Pages<'_, Workflow> {
        Pages::new(self, &["workflows"], filters([("q", q.map(str::to_string))]))
    }

    /// Deletes a workflow. Its runs go on to their end.
    pub async fn delete_workflow(&self, name: &str) -> Result<(), Error> {
        self.execute(Call::delete(&["workflows", name])).await
    }

    /// The schedules of one workflow, or of all.
    pub async fn schedules(&self, workflow: Option<&str>) -> Result<Vec<Schedule>, Error> {
        let call = match workflow {
            Some(workflow) => Call::get(&["workflows", workflow, "schedule"]),
            None => Call::get(&["schedules"]),
        };
        self.data(call.attempts(ATTEMPTS)).await
    }
}
