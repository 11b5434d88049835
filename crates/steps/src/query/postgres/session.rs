//! One connection, and what becomes of it when its step is over.

use super::super::pool::Lease;
use std::time::Duration;
use stepwell_store::postgres::Tls;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// For what is asked of the server apart from the statement.
const ANSWER: Duration = Duration::from_secs(5);

/// What can outlive a transaction. (`DISCARD ALL` would also forget the statements that the driver keeps.)
const TIDY: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; SELECT pg_advisory_unlock_all();
                    DISCARD TEMP; DISCARD SEQUENCES";

pub struct Session {
    pub client: Client,
    /// Keeps the conversation going; ends with this.
    pub carrier: JoinHandle<()>,
    pub tls: Tls,
}

impl Session {
    /// Whether the server is still there. It may have gone without a word since the last step.
    pub async fn answers(&self) -> bool {
        !self.client.is_closed() && in_time(self.client.check_connection()).await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.carrier.abort();
    }
}

async fn in_time(asked: impl Future<Output = Result<(), tokio_postgres::Error>>) -> bool {
    matches!(tokio::time::timeout(ANSWER, asked).await, Ok(Ok(())))
}

/// A connection in use. Unless it is finished with, whatever it does on the server is cancelled when this is dropped.
pub struct Busy(Option<(Session, Lease<Session>)>);

impl Busy {
    pub fn new(session: Session, lease: Lease<Session>) -> Busy {
        Busy(Some((session, lease)))
    }

    pub fn session(&mut self) -> &mut Session {
        &mut self.0.as_mut().expect("it is there until it is finished with").0
    }

    /// Gives it back, once the server says that nothing is left of the step.
    pub fn finish(mut self) {
        let Some((session, lease)) = self.0.take() else { return };
        tokio::spawn(async move {
            if in_time(session.client.batch_execute(TIDY)).await {
                lease.give_back(session);
            }
        });
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Some((session, lease)) = self.0.take() else { return };
        let token = session.client.cancel_token();
        // Without a runtime the process is about to end, and the connection with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if !session.client.is_closed() {
                in_time(token.cancel_query(session.tls.clone())).await;
            }
            drop((session, lease));
        });
    }
}
