//! Keeps one server connected: connects, listens, and reconnects with backoff when the connection ends.

use super::Context;
use super::child::Process;
use super::connect::{self, Connected, Handshake, PartialConnection, truncated};
use super::list;
use super::upstream::{Link, Upstream};
use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::service::Subscription;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::time::Millis;
use stepwell_engine::upstream::{FirstSeen, State, clash};
use stepwell_store::OrgId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// A connection that lasted this long resets the backoff.
const STABLE: Duration = Duration::from_secs(60);
/// How often the tools are listed if the server does not report changes.
const MAX_REFRESH: Duration = Duration::from_secs(300);
const MIN_REFRESH: Duration = Duration::from_secs(30);
/// How long the last output of an ended process is read. Its pipe may be held open by processes that it started.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// Change notifications within this time are handled together.
const DEBOUNCE: Duration = Duration::from_millis(50);

pub async fn supervise(upstream: Arc<Upstream>, context: Arc<Context>, stop: CancellationToken) {
    let (mut pause, mut handshake) = (MIN_BACKOFF, Handshake::Newest);
    while !stop.is_cancelled() {
        upstream.set_connecting();
        let session = session(&upstream, &context, handshake, &stop).await;
        let Ended { why, lasted } = match session {
            Some(ended) => ended,
            None => break,
        };
        if lasted.is_some_and(|lasted| lasted >= STABLE) {
            pause = MIN_BACKOFF;
        }
        if lasted.is_none() {
            handshake = handshake.other();
        }
        let wait = jittered(pause);
        let next = context.clock.now() + Millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        tracing::warn!(server = upstream.name(), %why, retry_in_ms = wait.as_millis(), "MCP server disconnected");
        upstream.set_down(State::Down { why, next });
        pause = (pause * 2).min(MAX_BACKOFF);
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(wait) => {}
        }
    }
    let why = "this process is shutting down".into();
    upstream.set_down(State::Down { why, next: context.clock.now() });
}

/// Adds jitter of up to a quarter, so that servers that failed together do not reconnect together.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0];
    let _ = getrandom::fill(&mut byte);
    pause.mul_f64(0.75 + f64::from(byte[0]) / 1024.0)
}

struct Ended {
    why: String,
    /// How long it was connected, if at all.
    lasted: Option<Duration>,
}

/// Runs one connection to its end; `None` if the supervisor is stopping. Leaves no process behind.
async fn session(
    upstream: &Arc<Upstream>,
    context: &Context,
    handshake: Handshake,
    stop: &CancellationToken,
) -> Option<Ended> {
    let mut partial = PartialConnection::default();
    let mut ready = None;
    let why = tokio::select! {
        why = connect_and_listen(upstream, context, handshake, &mut partial, &mut ready) => Some(why),
        () = stop.cancelled() => None,
    };
    // From here on, calls no longer find the connection.
    upstream.set_connecting();
    let how = match partial.process.take() {
        Some(process) => Some(process.end().await),
        None => None,
    };
    let why = match (why?, how) {
        (why, Some(how)) => format!("{why}; {how}"),
        (why, None) => why,
    };
    Some(Ended { why: truncated(&partial.mask.shown(&why)), lasted: ready.map(|since: Instant| since.elapsed()) })
}

/// Connects, lists the tools and listens until the connection ends. Returns why it ended.
async fn connect_and_listen(
    upstream: &Arc<Upstream>,
    context: &Context,
    handshake: Handshake,
    partial: &mut PartialConnection,
    ready: &mut Option<Instant>,
) -> String {
    let limit = upstream.config.connect_timeout;
    let begin = async {
        let org = organisation(upstream, context).await?;
        let connected = connect::connect(context, &upstream.config, org, handshake, partial).await?;
        let listing = tokio::select! {
            listing = refresh(upstream, context, &connected.link) => listing?,
            why = exited(&mut partial.process) => return Err(why),
        };
        Ok::<_, String>((connected, listing))
    };
    let (connected, ttl) = match tokio::time::timeout(limit, begin).await {
        Ok(Ok(begun)) => begun,
        Ok(Err(why)) => return partial.verdict.why().map_or(why, str::to_owned),
        Err(_) => {
            return format!("it did not complete the handshake and list its tools within {} s", limit.as_secs_f64());
        }
    };
    let Connected { service, link, about, protocol } = connected;
    tracing::info!(server = upstream.name(), about, protocol, "MCP server connected");
    *ready = Some(Instant::now());
    upstream.set_ready(link.clone(), about, protocol);
    let why = tokio::select! {
        _ = service.waiting() => "it closed the connection".into(),
        why = listen(upstream, context, &link, ttl) => why,
        why = exited(&mut partial.process) => why,
    };
    // Whatever ended first, this is the cause.
    link.verdict.why().map_or(why, str::to_owned)
}

/// Waits for the end of the process, if there is one, and for its last output to be read.
pub async fn exited(process: &mut Option<Process>) -> String {
    match process {
        Some(process) => process.exited().await,
        None => std::future::pending().await,
    }
    tokio::time::sleep(LAST_OUTPUT).await;
    "it stopped".into()
}

async fn organisation(upstream: &Upstream, context: &Context) -> Result<OrgId, String> {
    let unreadable = |error| format!("the store cannot be read: {error}");
    let org = match (upstream.org(), &upstream.config.organisation) {
        (Some(org), _) => org,
        (None, None) => OrgId(1),
        (None, Some(name)) => {
            let found = context.pins.organisation(name).await.map_err(unreadable)?;
            found.ok_or_else(|| format!("there is no organisation named {name}"))?
        }
    };
    upstream.set_org(org);
    // Accepted tools belong to the server even before it is connected.
    if let Some(accepted) = context.pins.accepted(org, upstream.name()).await.map_err(unreadable)? {
        upstream.set_accepted(accepted);
    }
    Ok(org)
}

/// Lists the tools. Returns how long the list is valid, if the server says so.
async fn refresh(upstream: &Upstream, context: &Context, link: &Link) -> Result<Option<Duration>, String> {
    let org = upstream.org().unwrap_or(OrgId(1));
    let mut listing = list::list(upstream, link).await?;
    let taken = context.pins.exposed(org).await.map_err(|error| format!("the store cannot be read: {error}"))?;
    for known in std::mem::take(&mut listing.tools) {
        let name = &known.offered.name;
        match context.clash(upstream, org, name).or_else(|| clash(&taken, name)) {
            Some(why) => listing.hold(upstream, &known.offered.tool, why),
            None => listing.tools.push(known),
        }
    }
    let tools = listing.tools;
    let offered: Vec<_> = tools.iter().map(|known| known.offered.clone()).collect();
    let seen = FirstSeen { server: upstream.name(), plain: upstream.config.plain_names, offered: &offered };
    let accepted = context.pins.first_seen(org, seen, context.clock.now()).await;
    let accepted = accepted.map_err(|error| format!("its accepted tools cannot be read: {error}"))?;
    for tool in &offered {
        let standing = accepted.standing(tool);
        if standing != stepwell_engine::upstream::Standing::Accepted && upstream.standing(tool) != standing {
            tracing::warn!(
                server = upstream.name(),
                tool = tool.tool,
                standing = standing.name(),
                "a tool needs acceptance"
            );
        }
    }
    upstream.set_tools(tools, listing.held, accepted);
    Ok(listing.ttl)
}

/// Lists the tools again when the server reports a change, when the list expires, and when a call suspects a broken
/// connection. Returns why the connection ended.
async fn listen(upstream: &Upstream, context: &Context, link: &Link, mut ttl: Option<Duration>) -> String {
    let mut subscription = None;
    loop {
        if subscription.is_none() {
            subscription = subscribe(link).await;
        }
        let old = ttl.map_or(MAX_REFRESH, |ttl| ttl.clamp(MIN_REFRESH, MAX_REFRESH));
        tokio::select! {
            () = link.progress.changed.notified() => {}
            () = upstream.suspect.notified() => {}
            () = tools_changed(&mut subscription) => {}
            () = tokio::time::sleep(old) => {}
        }
        tokio::time::sleep(DEBOUNCE).await;
        match tokio::time::timeout(upstream.config.connect_timeout, refresh(upstream, context, link)).await {
            Ok(Ok(next)) => ttl = next,
            Ok(Err(why)) => return why,
            Err(_) => return "it no longer responds".into(),
        }
    }
}

/// Subscribes to changes of the tools, which servers without sessions report to subscribers only.
async fn subscribe(link: &Link) -> Option<Subscription> {
    let info = link.peer.peer_info()?;
    if !link.modern || info.capabilities.tools.as_ref()?.list_changed != Some(true) {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    tokio::time::timeout(Duration::from_secs(10), link.peer.listen(filter)).await.ok()?.ok()
}

/// Waits for a change of the tools; forever without a subscription.
async fn tools_changed(subscription: &mut Option<Subscription>) {
    while let Some(open) = subscription {
        match open.next().await {
            Ok(Some(ServerNotification::ToolListChangedNotification(_))) => return,
            Ok(Some(_)) => {}
            // The list is still refreshed periodically.
            Ok(None) | Err(_) => *subscription = None,
        }
    }
    std::future::pending().await
}
