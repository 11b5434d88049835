//! Opens one connection to a server, from its configuration to the end of the handshake.

use super::child::{self, Process, Program};
use super::guard::Guard;
use super::http;
use super::limits::Verdict;
use super::message::UNREADABLE;
use super::pipes::Pipes;
use super::probe;
use super::progress::{Handler, ProgressTracker};
use super::secrets::{self, Filled};
use super::supervise::exited;
use super::upstream::Link;
use super::{Context, ServerConfig, Transport};
use crate::http::cause as http_cause;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, RunningService, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use std::error::Error;
use std::sync::Arc;
use stepwell_core::unseen::escaped;
use stepwell_engine::Mask;
use stepwell_store::OrgId;
use tokio::io::BufReader;

/// How a connection begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handshake {
    /// The newest revision, or the older handshake if the server replies that it does not know the newest.
    Newest,
    /// The older handshake at once: some servers exit or stay silent on an unknown message.
    Older,
}

impl Handshake {
    pub fn other(self) -> Handshake {
        match self {
            Handshake::Newest => Handshake::Older,
            Handshake::Older => Handshake::Newest,
        }
    }

    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Handshake::Newest => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Handshake::Older => ClientLifecycleMode::Initialize,
        }
    }
}

/// A server that has completed the handshake.
pub struct Connected {
    pub service: RunningService<RoleClient, Handler>,
    pub link: Link,
    pub about: Option<String>,
    pub protocol: Option<String>,
}

/// The parts of a connection that are needed if it fails: to explain the failure and to mask secrets in it.
#[derive(Default)]
pub struct PartialConnection {
    pub process: Option<Process>,
    pub mask: Arc<Mask>,
    pub verdict: Arc<Verdict>,
    /// Whether the server refused the credentials.
    pub denied: bool,
}

pub async fn connect(
    context: &Context,
    config: &ServerConfig,
    org: OrgId,
    handshake: Handshake,
    partial: &mut PartialConnection,
) -> Result<Connected, String> {
    let Filled { transport, mask } = secrets::fill(context, org, &config.transport).await?;
    partial.mask = Arc::new(mask);
    let progress = Arc::new(ProgressTracker::new(partial.mask.clone()));
    let handler = Handler { progress: progress.clone() };
    let verdict = &partial.verdict;
    let served = match transport {
        Transport::Stdio { command, args, env, cwd } => {
            let program = Program { command, args, env, cwd, keeper: config.keeper.clone() };
            let started = child::start(program, partial.mask.clone(), &config.name).await?;
            partial.process = Some(started.process);
            let (mut stdout, mut stdin) = (BufReader::new(started.stdout), started.stdin);
            let lifecycle = match handshake {
                Handshake::Newest => tokio::select! {
                    detected = probe::detect(&mut stdout, &mut stdin) => detected?,
                    why = exited(&mut partial.process) => return Err(why),
                },
                Handshake::Older => ClientLifecycleMode::Initialize,
            };
            let pipes = Pipes::new(stdout, stdin, verdict.clone());
            let guard = Guard::new(pipes, &config.name, verdict.clone(), progress.clone());
            let served = handler.serve_with_lifecycle(guard, lifecycle);
            tokio::select! {
                served = served => served,
                why = exited(&mut partial.process) => return Err(why),
            }
        }
        Transport::Http { url, headers } => {
            let (connect_timeout, authorities) = (config.connect_timeout, &config.authorities);
            let server = http::Endpoint { url: &url, headers: &headers, connect_timeout, authorities };
            let transport = http::transport(server, context.egress, verdict.clone())?;
            let guard = Guard::new(transport, &config.name, verdict.clone(), progress.clone());
            handler.serve_with_lifecycle(guard, handshake.lifecycle()).await
        }
    };
    let service = served.map_err(|error| {
        partial.denied = is_denied(&error);
        refused(&error)
    })?;
    let peer = service.peer().clone();
    let info = peer.peer_info();
    let about = info.as_ref().and_then(|info| info.server_info.as_ref());
    let about = about.map(|who| truncated(&partial.mask.shown(&format!("{} {}", who.name, who.version))));
    let version = info.as_ref().map(|info| info.protocol_version.clone());
    let modern = version.as_ref().is_some_and(|version| *version >= ProtocolVersion::V_2026_07_28);
    let protocol = version.map(|version| version.as_str().to_owned());
    let link = Link { peer, progress, mask: partial.mask.clone(), verdict: verdict.clone(), modern };
    Ok(Connected { service, link, about, protocol })
}

fn is_denied(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => is_denied(fallback),
        ClientInitializeError::TransportError { error, .. } => unauthorized(&*error.error).is_some(),
        _ => false,
    }
}

fn refused(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection before the handshake".into(),
        // The SDK's texts of these contain Rust's debug format.
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            "its response to the handshake is not one that MCP defines".into()
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            truncated(&format!("it supports only other revisions of MCP: {}", versions.join(", ")))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => refused(fallback),
        ClientInitializeError::TransportError { error, .. } => causes(&*error.error),
        other => causes(other),
    }
}

/// Describes a failed request without the SDK's type names.
pub fn describe(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => causes(&*error.error),
        ServiceError::TransportClosed => "it closed the connection".into(),
        ServiceError::McpError(error) if error.code == UNREADABLE => {
            truncated(&format!("its response cannot be read: {}", error.message))
        }
        ServiceError::McpError(error) => truncated(&format!("it returned error {}: {}", error.code.0, error.message)),
        other => causes(other),
    }
}

/// Describes an error with its causes.
fn causes(error: &(dyn Error + 'static)) -> String {
    // Its own text repeats the URL.
    if let Some(error) = http_client_error(error) {
        return truncated(&http_cause(error));
    }
    let mut text = String::new();
    for cause in chain(error) {
        let message = cause.to_string();
        if !text.contains(&message) {
            text = if text.is_empty() { message } else { format!("{text}: {message}") };
        }
    }
    truncated(&text)
}

/// The HTTP client's error in the chain of causes.
pub fn http_client_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a reqwest::Error> {
    chain(error).find_map(|error| match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => Some(error),
        _ => error.downcast_ref(),
    })
}

/// The refusal of the credentials in the chain of causes.
pub fn unauthorized(error: &(dyn Error + 'static)) -> Option<String> {
    chain(error).find_map(|error| match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::AuthRequired(refused)) => Some(truncated(&refused.www_authenticate_header)),
        _ => None,
    })
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (*error).source())
}

/// Text from a server for messages: truncated, with unseen characters escaped.
pub fn truncated(text: &str) -> String {
    const MAX: usize = 1_000;
    let cut = &text[..text.floor_char_boundary(MAX)];
    let end = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{end}", escaped(cut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{EmptyObject, ServerResult};

    fn check(error: ClientInitializeError, expected: &str) {
        assert_eq!(refused(&error), expected);
    }

    #[test]
    fn a_failed_handshake_is_described_without_debug_output() {
        let result = ServerResult::EmptyResult(EmptyObject {});
        let invalid = "its response to the handshake is not one that MCP defines";
        check(ClientInitializeError::ExpectedInitResult(Some(result)), invalid);
        check(ClientInitializeError::ExpectedInitResponse(None), invalid);
        let error = ClientInitializeError::NoCompatibleProtocolVersion {
            client_supported: vec![ProtocolVersion::V_2026_07_28],
            server_supported: vec![ProtocolVersion::V_2024_11_05, ProtocolVersion::V_2025_03_26],
        };
        check(error, "it supports only other revisions of MCP: 2024-11-05, 2025-03-26");
    }
}
