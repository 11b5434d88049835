//! One connection to a server, from its configuration to the end of the handshake.

use super::book::{Book, Handler};
use super::child::{self, Process, Program};
use super::http;
use super::probe;
use super::secrets::{self, Filled};
use super::upstream::Link;
use super::{Around, ServerConfig, Transport};
use crate::http::cause as http_cause;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, RunningService, ServiceError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use std::error::Error;
use std::sync::Arc;
use stepwell_engine::Mask;
use stepwell_store::OrgId;
use tokio::io::BufReader;

/// How the talk begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// The newest revision, or an older handshake if the server answers that it does not know it.
    Newest,
    /// The older handshake at once: some servers end, or stay silent, at what they do not know.
    Older,
}

impl Opening {
    pub fn other(self) -> Opening {
        match self {
            Opening::Newest => Opening::Older,
            Opening::Older => Opening::Newest,
        }
    }

    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Opening::Newest => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Opening::Older => ClientLifecycleMode::Initialize,
        }
    }
}

/// A server that has introduced itself.
pub struct Connected {
    pub service: RunningService<RoleClient, Handler>,
    pub link: Link,
    pub about: Option<String>,
    pub protocol: Option<String>,
}

/// The parts of a connection in the making that outlive a failure: to say why, and without secrets.
#[derive(Default)]
pub struct Making {
    pub process: Option<Process>,
    pub mask: Arc<Mask>,
}

pub async fn connect(
    around: &Around,
    config: &ServerConfig,
    org: OrgId,
    opening: Opening,
    making: &mut Making,
) -> Result<Connected, String> {
    let Filled { transport, mask } = secrets::fill(around, org, &config.transport).await?;
    making.mask = Arc::new(mask);
    let book = Arc::new(Book::new(making.mask.clone()));
    let handler = Handler { book: book.clone() };
    let served = match transport {
        Transport::Stdio { command, args, env, cwd } => {
            let program = Program { command, args, env, cwd };
            let started = child::start(program, making.mask.clone(), &config.name).await?;
            making.process = Some(started.process);
            let (mut stdout, mut stdin) = (BufReader::new(started.stdout), started.stdin);
            let lifecycle = match opening {
                Opening::Newest => probe::ask(&mut stdout, &mut stdin).await?,
                Opening::Older => ClientLifecycleMode::Initialize,
            };
            let pipes = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(http::MAX_MESSAGE);
            handler.serve_with_lifecycle(pipes, lifecycle).await
        }
        Transport::Http { url, headers } => {
            let transport = http::transport(&url, &headers, around.egress, config.connect_timeout)?;
            handler.serve_with_lifecycle(transport, opening.lifecycle()).await
        }
    };
    let service = served.map_err(|error| refused(&error))?;
    let peer = service.peer().clone();
    let info = peer.peer_info();
    let about = info.as_ref().and_then(|info| info.server_info.as_ref());
    let about = about.map(|who| short(&making.mask.shown(&format!("{} {}", who.name, who.version))));
    let version = info.as_ref().map(|info| info.protocol_version.clone());
    let modern = version.as_ref().is_some_and(|version| *version >= ProtocolVersion::V_2026_07_28);
    let protocol = version.map(|version| version.as_str().to_owned());
    let link = Link { peer, book, mask: making.mask.clone(), modern };
    Ok(Connected { service, link, about, protocol })
}

fn refused(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "it hung up before it introduced itself".into(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => refused(fallback),
        ClientInitializeError::TransportError { error, .. } => causes(&*error.error),
        other => causes(other),
    }
}

/// What the SDK says of a request that came to nothing, without its own names of things.
pub fn said(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => causes(&*error.error),
        ServiceError::TransportClosed => "it hung up".into(),
        ServiceError::McpError(error) => short(&format!("it answered with error {}: {}", error.code.0, error.message)),
        other => causes(other),
    }
}

/// An error with what is behind it.
fn causes(error: &(dyn Error + 'static)) -> String {
    // Its own words repeat the URL.
    if let Some(error) = of_client(error) {
        return short(&http_cause(error));
    }
    let mut text = String::new();
    for cause in chain(error) {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = if text.is_empty() { words } else { format!("{text}: {words}") };
        }
    }
    short(&text)
}

/// The error of the HTTP client that is behind this one, if it is.
pub fn of_client<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a reqwest::Error> {
    chain(error).find_map(|error| match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => Some(error),
        _ => error.downcast_ref(),
    })
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (*error).source())
}

/// As much of a foreign text as a message needs.
pub fn short(text: &str) -> String {
    const MAX: usize = 1_000;
    if text.len() <= MAX { text.to_owned() } else { format!("{}…", &text[..text.floor_char_boundary(MAX)]) }
}
