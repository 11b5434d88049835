//! Which revision a process speaks, asked before the SDK begins: it would wait ten seconds for the answer and then try the
//! older way, and a process may need longer to start.

use super::book::{capabilities, who};
use super::http::MAX_MESSAGE;
use rmcp::ClientLifecycleMode;
use rmcp::model::{ProtocolVersion, RequestMetaObject};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const ID: &str = "which-revision";

/// The way in which the talk is to begin. Waits for as long as the caller does.
pub async fn ask(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> Result<ClientLifecycleMode, String> {
    let newest = ProtocolVersion::V_2026_07_28;
    let meta = RequestMetaObject::with_client_context(newest.clone(), who(), capabilities());
    let question = json!({"jsonrpc": "2.0", "id": ID, "method": "server/discover", "params": {"_meta": meta}});
    let hung_up = |_| "it hung up before it introduced itself".to_owned();
    to.write_all(format!("{question}\n").as_bytes()).await.map_err(hung_up)?;
    to.flush().await.map_err(hung_up)?;
    loop {
        let mut line = Vec::new();
        let count = (&mut *from).take(MAX_MESSAGE as u64).read_until(b'\n', &mut line).await.map_err(hung_up)?;
        if count == 0 {
            return Err(hung_up(std::io::ErrorKind::UnexpectedEof.into()));
        }
        // What is no message is passed over, here as later.
        let Ok(answer) = serde_json::from_slice::<Value>(&line) else { continue };
        if answer.get("error").is_some() {
            return Ok(ClientLifecycleMode::Initialize);
        }
        if answer.get("id").and_then(Value::as_str) == Some(ID) {
            let versions = answer.pointer("/result/supportedVersions").and_then(Value::as_array);
            let known = versions.is_some_and(|all| all.iter().any(|version| version == newest.as_str()));
            let discover = ClientLifecycleMode::Discover { preferred_versions: vec![newest] };
            return Ok(if known { discover } else { ClientLifecycleMode::Initialize });
        }
    }
}
