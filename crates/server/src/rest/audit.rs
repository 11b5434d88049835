//! The audit trail: pages of it, verifying it, exporting it, and anchors.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::Params;
use crate::error::Problem;
use crate::view::*;
use async_trait::async_trait;
use axum::Json as Reply;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;
use std::io;
use stepwell_core::time::Time;
use stepwell_engine::commands::{AuditExport, AuditQuery};
use stepwell_engine::doctor::Lines;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Bytes of an export that are sent at a time, and how many such pieces wait for a slow client.
const PIECE: usize = 64 << 10;
const WAITING: usize = 4;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(audit)).routes(routes!(verify)).routes(routes!(export)).routes(routes!(anchor))
}

#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct AuditFilters {
    /// The user who acted
    by: Option<String>,
    /// For example `run.cancel`
    action: Option<String>,
    /// The target of the action
    target: Option<String>,
    /// Maximum number of entries; 50 by default
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the previous page
    cursor: Option<String>,
}

/// The audit trail, newest first; for administrators
#[utoipa::path(get, path = "/api/v1/audit", operation_id = "listAuditRows",
    tag = "organisations", params(AuditFilters), responses(
    (status = 200, description = "A page of the audit trail", body = Page<AuditView>), Problems))]
async fn audit(
    State(app): State<App>,
    Auth(caller): Auth,
    Params(filters): Params<AuditFilters>,
) -> Answer<Reply<Page<AuditView>>> {
    let bad = || Problem::input("cursor", "this is not the `next` of an earlier page");
    let before = filters.cursor.map(|cursor| cursor.parse().map_err(|_| bad())).transpose()?;
    let limit = page_size(filters.limit, 50)?;
    let AuditFilters { by, action, target, .. } = filters;
    let rows = app.engine.audit(&caller).list(AuditQuery { by, action, target, before, limit }).await?;
    let next = rows.last().filter(|_| rows.len() == limit as usize).map(|row| row.id.to_string());
    Ok(Reply(Page { data: rows.into_iter().map(AuditView::from).collect(), next }))
}

/// Verify the hash chain of the audit trail from the first row to the last
#[utoipa::path(get, path = "/api/v1/audit/verify", operation_id = "verifyAuditTrail", tag = "organisations", responses(
    (status = 200, description = "The verdict", body = Data<AuditVerdict>), Problems))]
async fn verify(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Data<AuditVerdict>>> {
    let verdict = app.engine.audit(&caller).verify().await?;
    Ok(Reply(Data { data: AuditVerdict { rows: verdict.rows, broken_at: verdict.broken_at } }))
}

#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct ExportFilters {
    /// Only rows since this time, such as `2026-11-18T00:00:00Z`
    since: Option<String>,
}

/// The audit trail of all organisations as a file that can be verified, one JSON object per line; for operators
#[utoipa::path(get, path = "/api/v1/audit/export", operation_id = "exportAuditTrail", tag = "organisations",
    params(ExportFilters), responses(
    (status = 200, description = "The rows, newest first, and a signature at the end", body = String,
        content_type = "application/x-ndjson"), Problems))]
async fn export(
    State(app): State<App>,
    Auth(caller): Auth,
    Params(filters): Params<ExportFilters>,
) -> Answer<Response> {
    let bad = || Problem::input("since", "this is not a time; write one such as 2026-11-18T00:00:00Z");
    let since = filters.since.map(|since| Time::parse(&since).ok_or_else(bad)).transpose()?;
    let export = app.engine.audit(&caller).export(since).await?;
    let (to, pieces) = mpsc::channel(WAITING);
    tokio::spawn(send(export, to));
    let mut response = Response::new(Body::from_stream(ReceiverStream::new(pieces)));
    let kind = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// Sends an export to the client. If it fails, the connection breaks off; the file then lacks its signature.
async fn send(export: AuditExport, to: mpsc::Sender<io::Result<Bytes>>) {
    let mut pieces = Pieces { gathered: Vec::new(), to: to.clone() };
    let sent = match export.write(&mut pieces).await {
        Ok(_) => pieces.send().await,
        Err(error) => Err(io::Error::other(error.to_string())),
    };
    if let Err(error) = sent {
        // The client may have left, which is the usual reason.
        let _ = to.send(Err(error)).await;
    }
}

struct Pieces {
    gathered: Vec<u8>,
    to: mpsc::Sender<io::Result<Bytes>>,
}

impl Pieces {
    async fn send(&mut self) -> io::Result<()> {
        let piece = Bytes::from(std::mem::take(&mut self.gathered));
        self.to.send(Ok(piece)).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[async_trait]
impl Lines for Pieces {
    async fn line(&mut self, text: &str) -> io::Result<()> {
        self.gathered.extend_from_slice(text.as_bytes());
        self.gathered.push(b'\n');
        if self.gathered.len() < PIECE { Ok(()) } else { self.send().await }
    }
}

/// An anchor: the heads of the audit trail, to be kept elsewhere; for operators
#[utoipa::path(get, path = "/api/v1/audit/anchor", operation_id = "getAuditAnchor", tag = "organisations", responses(
    (status = 200, description = "The anchor of the present state", body = Data<AnchorView>), Problems))]
async fn anchor(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Data<AnchorView>>> {
    Ok(Reply(Data { data: app.engine.audit(&caller).anchor().await?.into() }))
}
