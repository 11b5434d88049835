//! `defaults`: what the calls of a workflow have if they set nothing themselves.
//!
//! `retry` and `timeout` are for every call (http, tool, javascript, query), `headers` for http steps. Gates, waits,
//! sleeps and child workflows have none: there a default would end what is meant to wait.

use super::http::read_headers;
use super::{Rules, retry};
use crate::draft::Draft;
use crate::fields::{Field, Fields};
use crate::values::Lasts;
use serde_json::{Map, Value as Json};
use std::sync::Arc;
use stepwell_core::template::Template;
use stepwell_core::time::Millis;

/// The part of the rules that the author wrote for all steps.
#[derive(Clone, Default)]
pub struct Defaults {
    /// As written, for comparing versions: a step whose defaults changed has changed.
    pub written: Option<Arc<Json>>,
    pub timeout: Option<Millis>,
    /// Whether `retry` of the rules is the author's.
    pub retries: bool,
    pub headers: Map<String, Json>,
}

impl Rules {
    /// These rules with the defaults that the author wrote.
    pub fn with_defaults<'d>(mut self, draft: &mut Draft<'d>, field: Option<Field<'d>>) -> Rules {
        let Some(field) = field else { return self };
        let Some(mut fields) = Fields::of(&field, draft) else { return self };
        let timeout = retry::read_timeout(draft, &mut fields, Lasts::Call);
        let (policy, written) = retry::read_retry(draft, &mut fields, self.retry.clone(), &self);
        let mut headers = Map::new();
        if let Some(field) = fields.take("headers") {
            read_headers(draft, &field);
            // Faults in them are reported here, once, and not at every step.
            let (_, faults) = Template::parse_lenient(&field.node.to_json(), self.grammar);
            match field.node.to_json() {
                Json::Object(given) if faults.is_empty() => headers = given,
                _ => drop(draft.template(&field, self.grammar)),
            }
        }
        fields.finish(draft, "`defaults`", &super::STEP_FIELDS);
        self.retry = policy;
        let retries = written.is_some();
        self.defaults = Defaults { written: Some(Arc::new(field.node.to_json())), timeout, retries, headers };
        self
    }

    /// A step as written, together with the defaults that apply to it.
    pub fn written(&self, mut step: Json) -> Json {
        if let (Some(defaults), Some(fields)) = (&self.defaults.written, step.as_object_mut()) {
            fields.insert("defaults".into(), Json::clone(defaults));
        }
        step
    }
}

impl Defaults {
    /// The headers of a request: its own, and the defaults with other names, whatever their case.
    pub fn merged_headers(&self, own: Option<Json>) -> Option<Json> {
        if self.headers.is_empty() {
            return own;
        }
        let own = match own {
            Some(Json::Object(own)) => own,
            _ => Map::new(),
        };
        let mut merged = self.headers.clone();
        merged.retain(|name, _| !own.keys().any(|other| other.eq_ignore_ascii_case(name)));
        merged.extend(own);
        Some(merged.into())
    }
}
