//! Notifications to subscribed clients: the list of tools has changed, or a run has changed.
//!
//! A notification only tells the client to read again. Definitions and grants advance the organisation's epoch, so one
//! number shows whether the list of tools may have changed. Tools of connected servers do not, so they are compared.

use super::{resources, tools};
use crate::app::App;
use crate::auth::Auth;
use crate::error::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use rmcp::model::*;
use rmcp::service::SubscriptionContext;
use std::time::Duration;
use stepwell_engine::commands::Right;
use stepwell_engine::upstream::Server;
use stepwell_engine::{Caller, Error};
use stepwell_store::{RunId, Version};

/// How often changes are polled.
const LOOK: Duration = Duration::from_secs(1);
/// After this many polls, the key is checked again even if nothing has changed.
const RECHECK: u32 = 30;
/// Maximum number of runs that one client follows.
const MOST: usize = 100;

/// The supported subscriptions: the list of tools, and runs.
pub fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.tools_list_changed = requested.tools_list_changed.filter(|wanted| *wanted);
    let runs = requested.resource_subscriptions.iter().flatten();
    let runs: Vec<String> = runs.filter(|uri| resources::run_named(uri).is_some()).take(MOST).cloned().collect();
    accepted.resource_subscriptions = Some(runs).filter(|runs| !runs.is_empty());
    accepted
}

struct Listener<'a> {
    app: &'a App,
    caller: Caller,
    parts: Parts,
    subscription: &'a SubscriptionContext,
    epoch: Option<i64>,
    /// The tools of connected servers, which do not advance the epoch.
    offered: Vec<Server>,
    tools: Option<Vec<Tool>>,
    runs: Vec<(String, RunId, Version)>,
}

/// Sends notifications until the client disconnects, its key becomes invalid, or the server stops.
pub async fn run(app: &App, caller: Caller, subscription: &SubscriptionContext) -> Result<(), Problem> {
    // Counts towards the limit of live streams.
    let place = app.hub.watch(&caller).await?;
    let parts = subscription.request_context().extensions.get::<Parts>();
    let parts = parts.ok_or_else(|| Problem::from(Error::Unavailable("the request has no caller".into())))?.clone();
    let offered = app.engine.mcp_servers(&caller).offered();
    let (tools, runs) = (None, Vec::new());
    let mut listener = Listener { app, caller, parts, subscription, epoch: None, offered, tools, runs };
    listener.begin().await?;
    for n in 1_u32.. {
        tokio::select! {
            () = subscription.cancelled() => return Ok(()),
            _ = place.end() => return Ok(()),
            () = tokio::time::sleep(LOOK) => {}
        }
        if !listener.poll(n.is_multiple_of(RECHECK)).await? {
            return Ok(());
        }
    }
    Ok(())
}

impl Listener<'_> {
    async fn begin(&mut self) -> Result<(), Problem> {
        self.epoch = self.app.engine.log().epoch(self.caller.org).await?;
        if self.subscription.accepted().tools_list_changed == Some(true) {
            self.tools = Some(tools::all(self.app, &self.caller).await?);
        }
        for uri in self.subscription.accepted().resource_subscriptions.iter().flatten() {
            self.caller.check(Right::Read)?;
            let Some(run) = resources::run_named(uri) else { continue };
            // Runs of other organisations are ignored.
            if let Ok(row) = crate::live::find(self.app, &self.caller, &run).await {
                let version = self.latest(row.id, Version(0)).await?;
                self.runs.push((uri.clone(), row.id, version));
            }
        }
        Ok(())
    }

    /// Returns false if the client has disconnected.
    async fn poll(&mut self, recheck: bool) -> Result<bool, Problem> {
        let epoch = self.app.engine.log().epoch(self.caller.org).await?;
        if epoch != self.epoch || recheck {
            let Auth(caller) = Auth::from_request_parts(&mut self.parts, self.app).await?;
            self.caller = caller;
        }
        let offered = self.app.engine.mcp_servers(&self.caller).offered();
        if (epoch != self.epoch || offered != self.offered)
            && let Some(before) = &self.tools
        {
            let now = tools::all(self.app, &self.caller).await?;
            let changed = now != *before;
            self.tools = Some(now);
            let notice = ServerNotification::ToolListChangedNotification(Default::default());
            if changed && self.subscription.sink().send(notice).await.is_err() {
                return Ok(false);
            }
        }
        (self.epoch, self.offered) = (epoch, offered);
        for at in 0..self.runs.len() {
            let (uri, id, last) = self.runs[at].clone();
            let version = self.latest(id, last).await?;
            if version != last {
                self.runs[at].2 = version;
                let notice = ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri));
                let notice = ServerNotification::ResourceUpdatedNotification(notice);
                if self.subscription.sink().send(notice).await.is_err() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The newest version of the run's log within one page.
    async fn latest(&self, run: RunId, after: Version) -> Result<Version, Error> {
        let rows = self.app.engine.log().tail(run, after, 1_000).await?;
        Ok(rows.last().map_or(after, |row| row.version))
    }
}
