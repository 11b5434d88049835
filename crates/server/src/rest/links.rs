//! Links that let a person answer a gate without a key. Opening a link decides nothing, so previews are harmless.
//! Submitting its form does, once.

mod form;
mod page;
mod words;

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::{Auth, guessed, is_own_origin};
use crate::body::{Json, Raw, pairs, within};
use crate::error::Problem;
use crate::shares::Payer;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::header::{ACCEPT, CACHE_CONTROL, ORIGIN};
use axum::http::{HeaderName, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use form::Sent;
use serde::Deserialize;
use stepwell_core::event::Ignored;
use stepwell_engine::Error;
use stepwell_engine::commands::{Approval, Asks, Decision, Linked};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(make)).routes(routes!(open, answer))
}

#[derive(Clone, Default, Debug, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct LinkRequest {
    /// The user who will answer; you, if omitted.
    user: Option<String>,
}

/// Create a link to answer without a key: for yourself, or as an administrator for anyone who may answer
#[utoipa::path(post, path = "/api/v1/runs/{run}/steps/{step}/link", operation_id = "createApprovalLink",
    tag = "approvals",
    params(("run" = String, Path, description = "The run's id"),
        ("step" = String, Path, description = "The step's name or path")),
    request_body(content = Option<LinkRequest>),
    responses((status = 201, description = "The link", body = Data<LinkView>), Problems))]
async fn make(
    State(app): State<App>,
    Auth(caller): Auth,
    Path((run, step)): Path<(String, String)>,
    Json(request, ..): Json<LinkRequest>,
) -> Answer<(StatusCode, Reply<Data<LinkView>>)> {
    let user = request.user.as_deref().unwrap_or(&caller.name);
    let secret = app.engine.gates(&caller).link(&run, &step, user).await?;
    let url = format!("{}/approve/{secret}", app.public_url);
    Ok((StatusCode::CREATED, Reply(Data { data: LinkView { url } })))
}

/// A page that shows the question; it decides nothing
///
/// Errors are pages for clients that accept HTML, and problems for others.
#[utoipa::path(get, path = "/approve/{token}", operation_id = "showApprovalPage", tag = "approvals", security(()),
    params(("token" = String, Path, description = "The last part of the link")),
    responses((status = 200, description = "The question", body = String, content_type = "text/html"),
        (status = 410, description = "It was answered, or is no longer open", body = ProblemView,
            content_type = "application/problem+json"), Problems))]
async fn open(State(app): State<App>, Path(token): Path<String>, request: Request) -> Answer<Response> {
    match app.engine.inbound().linked(&token).await {
        Ok(linked) => show(&linked, wants_page(&request)),
        Err(error) => refuse(&app, &request, error),
    }
}

/// Submit the answer; the link works once
#[utoipa::path(post, path = "/approve/{token}", operation_id = "submitApprovalPage", tag = "approvals", security(()),
    params(("token" = String, Path, description = "The last part of the link")),
    request_body(content = String, content_type = "application/x-www-form-urlencoded",
        description = "decision (approve or deny), digest, comment, and the fields of the form"),
    responses((status = 200, description = "Accepted", body = String, content_type = "text/html"),
        (status = 410, description = "It was answered, or is no longer open", body = ProblemView,
            content_type = "application/problem+json"), Problems))]
async fn answer(State(app): State<App>, Path(token): Path<String>, mut request: Request) -> Answer<Response> {
    // A foreign page must not answer with a link that it got to know.
    if request.headers().contains_key(ORIGIN) && !is_own_origin(request.headers(), &app.public_url) {
        let detail = "answers are accepted only from the page behind the link";
        return Err(Problem::new(StatusCode::FORBIDDEN, "cross-origin", detail));
    }
    let page = wants_page(&request);
    let linked = match app.engine.inbound().linked(&token).await {
        Ok(linked) => linked,
        Err(error) => return refuse(&app, &request, error),
    };
    let Asks::Open(asks) = &linked.asks else { return show(&linked, page) };
    request.extensions_mut().insert(Payer::Organisation(linked.caller.org));
    let raw = Raw::from_request(request, &app).await?;
    let sent = Sent::read(pairs(&raw.bytes, &app)?)?;
    // The whole form may be JSON within a field.
    within(sent.first(form::WHOLE).unwrap_or_default().as_bytes(), &app, 0)?;
    let answered = match decision(asks, &sent) {
        Ok(decision) => {
            let approve = decision.approve;
            app.engine.inbound().answer_link(&token, decision).await.map(|now| (now, approve))
        }
        Err(faults) => Err(Error::Inputs(faults)),
    };
    match answered {
        // Another user was faster.
        Ok((now @ Linked { asks: Asks::Over(_), .. }, _)) => show(&now, page),
        Ok((now, approve)) => Ok(html(StatusCode::OK, page::taken(&now, approve))),
        Err(Error::Conflict(ignored)) if ignored != Ignored::OtherDigest => {
            show(&app.engine.inbound().linked(&token).await?, page)
        }
        Err(error) => wrong(Rejected { linked: &linked, asks, sent: &sent }, error, page),
    }
}

type Faults = Vec<(String, String)>;

fn decision(asks: &Approval, sent: &Sent) -> Result<Decision, Faults> {
    let approve = match sent.first("decision") {
        Some("approve") => true,
        Some("deny") => false,
        _ => return Err(vec![("decision".into(), "choose approve or deny".into())]),
    };
    let data = match asks.asks.get("form").filter(|_| approve) {
        Some(schema) => Some(form::filled(schema, sent)?),
        None => None,
    };
    let comment = sent.first("comment").map(str::trim).filter(|comment| !comment.is_empty()).map(str::to_string);
    Ok(Decision { approve, comment, data, digest: sent.first("digest").map(str::to_string), input: None })
}

fn wants_page(request: &Request) -> bool {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

/// Shows the question, or its outcome.
fn show(linked: &Linked, page: bool) -> Answer<Response> {
    match &linked.asks {
        Asks::Open(asks) => Ok(html(StatusCode::OK, page::asked(linked, asks, None))),
        Asks::Over(words) if page => Ok(html(StatusCode::GONE, page::over(linked, words))),
        Asks::Over(words) => Err(Problem::new(StatusCode::GONE, "step-finished", words)),
    }
}

/// An answer that was not accepted, and its question.
struct Rejected<'a> {
    linked: &'a Linked,
    asks: &'a Approval,
    sent: &'a Sent,
}

/// Shows the question again with the errors in the answer.
fn wrong(rejected: Rejected<'_>, error: Error, page: bool) -> Answer<Response> {
    let Rejected { linked, asks, sent } = rejected;
    let faults = match &error {
        Error::Input { path, message } => vec![(path.clone(), message.clone())],
        Error::Inputs(faults) => faults.clone(),
        Error::Conflict(_) => vec![("digest".to_string(), error.to_string())],
        _ => return failed(error, page),
    };
    if !page {
        return Err(error.into());
    }
    Ok(html(StatusCode::UNPROCESSABLE_ENTITY, page::asked(linked, asks, Some((sent, &faults)))))
}

fn refuse(app: &App, request: &Request, error: Error) -> Answer<Response> {
    if !matches!(error, Error::NotFound { .. }) {
        return failed(error, wants_page(request));
    }
    guessed(app, request.extensions())?;
    let words = "there is no question at this address";
    match wants_page(request) {
        true => Ok(html(StatusCode::NOT_FOUND, page::words(words))),
        false => Err(Problem::not_found(words)),
    }
}

fn failed(error: Error, page: bool) -> Answer<Response> {
    match error {
        Error::Refused(_) | Error::Forbidden { .. } if page => {
            Ok(html(StatusCode::FORBIDDEN, page::words(&format!("You may not answer this: {error}."))))
        }
        other => Err(other.into()),
    }
}

fn html(status: StatusCode, text: String) -> Response {
    // Browsers send the origin of a form only if the referrer policy allows it.
    let referrer = (HeaderName::from_static("referrer-policy"), "same-origin");
    let robots = (HeaderName::from_static("x-robots-tag"), "noindex");
    let headers = [super::pages::POLICY, (CACHE_CONTROL, "no-store"), referrer, robots];
    (status, headers, Html(text)).into_response()
}
