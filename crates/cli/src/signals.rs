//! Stop signals: the first stops gracefully, the second at once.

use crate::logging;
use anyhow::Context;
use std::time::Duration;
use stepwell_engine::Engine;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long running steps may take to finish.
const GRACE: Duration = Duration::from_secs(5);

/// SIGINT (^C) and SIGTERM.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// Resolves at the first signal from now on; the second ends the process at once.
pub fn asked_to_stop() -> anyhow::Result<impl Future<Output = ()>> {
    let mut signals = Signals::listen()?;
    Ok(async move {
        signals.next().await;
        tokio::spawn(async move {
            signals.next().await;
            std::process::exit(130);
        });
    })
}

impl Signals {
    pub fn listen() -> anyhow::Result<Signals> {
        let on = |kind| signal(kind).context("cannot receive signals");
        Ok(Signals { interrupt: on(SignalKind::interrupt())?, terminate: on(SignalKind::terminate())? })
    }

    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Stops the engine. Running steps may finish, unless another signal arrives.
    pub async fn stop(&mut self, engine: &Engine) {
        tokio::select! {
            () = engine.shutdown(GRACE) => {}
            () = self.next() => engine.kill(),
        }
        logging::end();
    }
}
