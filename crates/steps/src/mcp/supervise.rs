//! Keeps one server connected: connects, listens, and connects again when that ends, less and less often while it fails.

use super::Around;
use super::connect::{self, Connected, Making, Opening, short};
use super::list::{self, Listing};
use super::upstream::{Link, Upstream};
use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::service::Subscription;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::time::Millis;
use stepwell_engine::upstream::State;
use stepwell_store::OrgId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection that held this long was a good one.
const HEALTHY: Duration = Duration::from_secs(60);
/// How often a list is asked for where nobody tells that it changed.
const REFRESH: Duration = Duration::from_secs(300);
const SHORTEST_REFRESH: Duration = Duration::from_secs(30);
/// Notices of change that come together are one.
const TOGETHER: Duration = Duration::from_millis(50);

pub async fn supervise(upstream: Arc<Upstream>, around: Arc<Around>, stop: CancellationToken) {
    let (mut pause, mut opening) = (FIRST_PAUSE, Opening::Newest);
    while !stop.is_cancelled() {
        upstream.connecting();
        let session = session(&upstream, &around, opening, &stop).await;
        let Ended { why, held } = match session {
            Some(ended) => ended,
            None => break,
        };
        if held.is_some_and(|held| held >= HEALTHY) {
            pause = FIRST_PAUSE;
        }
        if held.is_none() {
            opening = opening.other();
        }
        let wait = jittered(pause);
        let next = around.clock.now() + Millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        tracing::warn!(server = upstream.name(), %why, again_in = ?wait, "an MCP server is down");
        upstream.down(State::Down { why, next });
        pause = (pause * 2).min(LONGEST_PAUSE);
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(wait) => {}
        }
    }
    let why = "this process is shutting down".into();
    upstream.down(State::Down { why, next: around.clock.now() });
}

/// Between three quarters of it and all, so that servers that went down together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0];
    let _ = getrandom::fill(&mut byte);
    pause.mul_f64(0.75 + f64::from(byte[0]) / 1024.0)
}

struct Ended {
    why: String,
    /// How long it was connected, if it was at all.
    held: Option<Duration>,
}

/// One connection, from its beginning to its end; nothing if all is to stop. No process is left behind.
async fn session(
    upstream: &Arc<Upstream>,
    around: &Around,
    opening: Opening,
    stop: &CancellationToken,
) -> Option<Ended> {
    let mut making = Making::default();
    let mut ready = None;
    let why = tokio::select! {
        why = talk(upstream, around, opening, &mut making, &mut ready) => Some(why),
        () = stop.cancelled() => None,
    };
    // Nobody finds the connection any more.
    upstream.connecting();
    let how = match making.process.take() {
        Some(process) => Some(process.end().await),
        None => None,
    };
    let why = match (why?, how) {
        (why, Some(how)) => format!("{why}; {how}"),
        (why, None) => why,
    };
    Some(Ended { why: short(&making.mask.shown(&why)), held: ready.map(|since: Instant| since.elapsed()) })
}

/// Connects, lists, and listens until that ends; why it did.
async fn talk(
    upstream: &Arc<Upstream>,
    around: &Around,
    opening: Opening,
    making: &mut Making,
    ready: &mut Option<Instant>,
) -> String {
    let limit = upstream.config.connect_timeout;
    let begin = async {
        let org = organisation(upstream, around).await?;
        let connected = connect::connect(around, &upstream.config, org, opening, making).await?;
        let listing = refresh(upstream, around, &connected.link).await?;
        Ok::<_, String>((connected, listing))
    };
    let (connected, holds) = match tokio::time::timeout(limit, begin).await {
        Ok(Ok(begun)) => begun,
        Ok(Err(why)) => return why,
        Err(_) => return format!("it did not introduce itself and its tools within {} s", limit.as_secs_f64()),
    };
    let Connected { service, link, about, protocol } = connected;
    tracing::info!(server = upstream.name(), about, protocol, "an MCP server is connected");
    *ready = Some(Instant::now());
    upstream.ready(link.clone(), about, protocol);
    tokio::select! {
        _ = service.waiting() => "it hung up".into(),
        why = listen(upstream, around, &link, holds) => why,
    }
}

async fn organisation(upstream: &Upstream, around: &Around) -> Result<OrgId, String> {
    let unreadable = |error| format!("the store cannot be read: {error}");
    let org = match (upstream.org(), &upstream.config.organisation) {
        (Some(org), _) => org,
        (None, None) => OrgId(1),
        (None, Some(name)) => {
            let found = around.pins.organisation(name).await.map_err(unreadable)?;
            found.ok_or_else(|| format!("there is no organisation named {name}"))?
        }
    };
    upstream.belongs_to(org);
    // The names that were accepted are its own even before it says so.
    if let Some(accepted) = around.pins.accepted(org, upstream.name()).await.map_err(unreadable)? {
        upstream.accepts(accepted);
    }
    Ok(org)
}

/// Lists the tools anew. How long that holds, if the server says so.
async fn refresh(upstream: &Upstream, around: &Around, link: &Link) -> Result<Option<Duration>, String> {
    let org = upstream.org().unwrap_or(OrgId(1));
    let Listing { tools, holds } = list::list(upstream, link).await?;
    let offered: Vec<_> = tools.iter().map(|known| known.offered.clone()).collect();
    let accepted = around.pins.first_seen(org, upstream.name(), &offered, around.clock.now()).await;
    let accepted = accepted.map_err(|error| format!("what was accepted of it cannot be read: {error}"))?;
    for tool in &offered {
        let standing = accepted.standing(tool);
        if standing != stepwell_engine::upstream::Standing::Accepted && upstream.standing(tool) != standing {
            tracing::warn!(server = upstream.name(), tool = tool.tool, standing = standing.name(), "a tool is held");
        }
    }
    upstream.offers(tools, accepted);
    Ok(holds)
}

/// Lists again when the server says so, when its list is old, and when a call doubts that it is there; why it is not.
async fn listen(upstream: &Upstream, around: &Around, link: &Link, mut holds: Option<Duration>) -> String {
    let mut subscription = None;
    loop {
        if subscription.is_none() {
            subscription = subscribe(link).await;
        }
        let old = holds.map_or(REFRESH, |holds| holds.clamp(SHORTEST_REFRESH, REFRESH));
        tokio::select! {
            () = link.book.changed.notified() => {}
            () = upstream.doubt.notified() => {}
            () = told(&mut subscription) => {}
            () = tokio::time::sleep(old) => {}
        }
        tokio::time::sleep(TOGETHER).await;
        match tokio::time::timeout(upstream.config.connect_timeout, refresh(upstream, around, link)).await {
            Ok(Ok(next)) => holds = next,
            Ok(Err(why)) => return why,
            Err(_) => return "it does not answer any more".into(),
        }
    }
}

/// Servers without sessions tell of changes only who asks for it.
async fn subscribe(link: &Link) -> Option<Subscription> {
    let info = link.peer.peer_info()?;
    if !link.modern || info.capabilities.tools.as_ref()?.list_changed != Some(true) {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    tokio::time::timeout(Duration::from_secs(10), link.peer.listen(filter)).await.ok()?.ok()
}

/// Ends at a change of the tools; never if nobody tells of any.
async fn told(subscription: &mut Option<Subscription>) {
    while let Some(open) = subscription {
        match open.next().await {
            Ok(Some(ServerNotification::ToolListChangedNotification(_))) => return,
            Ok(Some(_)) => {}
            // The list is looked at anew from time to time all the same.
            Ok(None) | Err(_) => *subscription = None,
        }
    }
    std::future::pending().await
}
