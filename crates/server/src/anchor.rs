//! Notes the heads of the audit trail outside of the store at an interval: in a file, at a webhook, or in the log.

use crate::config::Anchor;
use reqwest::Client;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use stepwell_engine::Engine;

const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);

/// Writes an anchor now, at every interval, and when `stop` completes. A destination that fails is tried again the next
/// time.
pub async fn run(engine: Engine, config: Anchor, stop: impl Future<Output = ()>) {
    stepwell_store::tls::install();
    let client = Client::builder().connect_timeout(CONNECT).timeout(ANSWER);
    let client = client.redirect(reqwest::redirect::Policy::none()).build();
    let mut stop = std::pin::pin!(stop);
    let mut stopped = false;
    loop {
        let noted = match engine.anchor().await {
            Ok(Some(line)) => note(&line, &config, client.as_ref().ok()).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = noted {
            tracing::warn!(%error, "cannot write an anchor; will retry");
        }
        if stopped {
            return;
        }
        tokio::select! {
            biased;
            () = &mut stop => stopped = true,
            () = tokio::time::sleep(Duration::from_millis(config.every.0)) => {}
        }
    }
}

async fn note(line: &str, config: &Anchor, client: Option<&Client>) -> Result<(), String> {
    if config.log {
        tracing::info!(anchor = line, "anchor of the audit trail");
    }
    if let Some(path) = &config.file {
        append(path, line).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if let (Some(url), Some(client)) = (&config.webhook, client) {
        let request = client.post(url).header("content-type", "application/json").body(line.to_string());
        let answer = request.send().await.map_err(|error| error.without_url().to_string())?;
        if !answer.status().is_success() {
            return Err(format!("the webhook answered {}", answer.status()));
        }
    }
    Ok(())
}

fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{line}")?;
    file.sync_data()
}
