//! A connection and its cleanup after a step.

use super::super::pool::Lease;
use std::time::Duration;
use stepwell_store::postgres::Tls;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// Limit for commands other than the step's statement.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

/// Resets whatever can outlive a transaction. (`DISCARD ALL` would also drop the statements that the driver caches.)
const RESET: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; SELECT pg_advisory_unlock_all();
                    DISCARD TEMP; DISCARD SEQUENCES";

pub struct Session {
    pub client: Client,
    /// Drives the connection; aborted on drop.
    pub driver: JoinHandle<()>,
    pub tls: Tls,
}

impl Session {
    /// Whether the server still responds. It may have closed the connection since the last step.
    pub async fn is_alive(&self) -> bool {
        !self.client.is_closed() && succeeds(self.client.check_connection()).await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

async fn succeeds(command: impl Future<Output = Result<(), tokio_postgres::Error>>) -> bool {
    matches!(tokio::time::timeout(COMMAND_TIMEOUT, command).await, Ok(Ok(())))
}

/// A connection in use. Unless `finish` is called, dropping it cancels the running statement on the server.
pub struct ActiveSession(Option<(Session, Lease<Session>)>);

impl ActiveSession {
    pub fn new(session: Session, lease: Lease<Session>) -> ActiveSession {
        ActiveSession(Some((session, lease)))
    }

    pub fn session(&mut self) -> &mut Session {
        &mut self.0.as_mut().expect("present until `finish`").0
    }

    /// Returns the connection to the pool after resetting its session state.
    pub fn finish(mut self) {
        let Some((session, lease)) = self.0.take() else { return };
        tokio::spawn(async move {
            if succeeds(session.client.batch_execute(RESET)).await {
                lease.put_back(session);
            }
        });
    }
}

impl Drop for ActiveSession {
    fn drop(&mut self) {
        let Some((session, lease)) = self.0.take() else { return };
        let token = session.client.cancel_token();
        // Without a runtime the process is about to end, which closes the connection.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if !session.client.is_closed() {
                succeeds(token.cancel_query(session.tls.clone())).await;
            }
            drop((session, lease));
        });
    }
}
