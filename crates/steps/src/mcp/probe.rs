//! Detects the revision that a process speaks, before the SDK starts. The SDK would wait ten seconds for the response
//! and then fall back to the older handshake, but a process may need longer to start.

use super::limits::MAX_MESSAGE;
use super::progress::{capabilities, client_info};
use rmcp::ClientLifecycleMode;
use rmcp::model::{ProtocolVersion, RequestMetaObject};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const ID: &str = "which-revision";

/// Returns how to begin the handshake. Has no timeout of its own.
pub async fn detect(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> Result<ClientLifecycleMode, String> {
    let newest = ProtocolVersion::V_2026_07_28;
    let meta = RequestMetaObject::with_client_context(newest.clone(), client_info(), capabilities());
    let question = json!({"jsonrpc": "2.0", "id": ID, "method": "server/discover", "params": {"_meta": meta}});
    let closed = |_| "it closed the connection before the handshake".to_owned();
    to.write_all(format!("{question}\n").as_bytes()).await.map_err(closed)?;
    to.flush().await.map_err(closed)?;
    loop {
        let mut line = Vec::new();
        let count = (&mut *from).take(MAX_MESSAGE as u64).read_until(b'\n', &mut line).await.map_err(closed)?;
        if count == 0 {
            return Err(closed(std::io::ErrorKind::UnexpectedEof.into()));
        }
        // Lines that are not messages are ignored, as they are later.
        let Ok(response) = serde_json::from_slice::<Value>(&line) else { continue };
        if response.get("error").is_some() {
            return Ok(ClientLifecycleMode::Initialize);
        }
        if response.get("id").and_then(Value::as_str) == Some(ID) {
            let versions = response.pointer("/result/supportedVersions").and_then(Value::as_array);
            let known = versions.is_some_and(|all| all.iter().any(|version| version == newest.as_str()));
            let discover = ClientLifecycleMode::Discover { preferred_versions: vec![newest] };
            return Ok(if known { discover } else { ClientLifecycleMode::Initialize });
        }
    }
}
