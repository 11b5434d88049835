//! Links by which a person answers without a key. Looking at one decides nothing, whatever program looks; what is sent from
//! its page does, once.

mod form;
mod page;

use super::incoming::guessed;
use super::{Answer, Problems};
use crate::app::App;
use crate::auth::{Auth, is_own_origin};
use crate::body::{Json, Raw};
use crate::error::Problem;
use crate::view::*;
use axum::Json as Shown;
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::header::{CACHE_CONTROL, ORIGIN};
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

/// Of what a form sends; what a gate keeps is bounded by the engine.
const MAX_FORM: usize = 1024 * 1024;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(make)).routes(routes!(look, answer))
}

#[derive(Clone, Default, Debug, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct LinkRequest {
    /// Whose answer it will be; yours, if nobody is named.
    user: Option<String>,
}

/// Make a link by which somebody can answer without a key: you, or as an administrator anyone who may
#[utoipa::path(post, path = "/api/v1/runs/{run}/steps/{step}/link", tag = "approvals",
    params(("run" = String, Path, description = "The run's id"),
        ("step" = String, Path, description = "The step's name or path")),
    request_body(content = Option<LinkRequest>),
    responses((status = 201, description = "The link", body = Data<LinkView>), Problems))]
async fn make(
    State(app): State<App>,
    Auth(caller): Auth,
    Path((run, step)): Path<(String, String)>,
    Json(request): Json<LinkRequest>,
) -> Answer<(StatusCode, Shown<Data<LinkView>>)> {
    let user = request.user.as_deref().unwrap_or(&caller.name);
    let secret = app.engine.make_link(&caller, &run, &step, user).await?;
    let url = format!("{}/approve/{secret}", app.public_url);
    Ok((StatusCode::CREATED, Shown(Data { data: LinkView { url } })))
}

/// A page that shows what is asked; it decides nothing
#[utoipa::path(get, path = "/approve/{token}", tag = "approvals", security(()),
    params(("token" = String, Path, description = "What the link ends with")),
    responses((status = 200, description = "What is asked", body = String, content_type = "text/html"),
        (status = 410, description = "It was answered, or is over", body = String, content_type = "text/html"),
        Problems))]
async fn look(State(app): State<App>, Path(token): Path<String>, request: Request) -> Answer<Response> {
    Ok(match app.engine.linked(&token).await {
        Ok(linked) => show(&linked, None),
        Err(error) => refuse(&app, &request, error)?,
    })
}

/// Answer what the page shows; it counts once
#[utoipa::path(post, path = "/approve/{token}", tag = "approvals", security(()),
    params(("token" = String, Path, description = "What the link ends with")),
    request_body(content = String, content_type = "application/x-www-form-urlencoded",
        description = "decision (approve or deny), digest, comment, and what the form asks for"),
    responses((status = 200, description = "Taken", body = String, content_type = "text/html"),
        (status = 410, description = "It was answered, or is over", body = String, content_type = "text/html"),
        Problems))]
async fn answer(State(app): State<App>, Path(token): Path<String>, request: Request) -> Answer<Response> {
    // A page of somebody else must not answer with a link that it came to know.
    if request.headers().contains_key(ORIGIN) && !is_own_origin(request.headers(), &app.public_url) {
        let detail = "answers are taken from the page behind the link only";
        return Err(Problem::new(StatusCode::FORBIDDEN, "cross-origin", detail));
    }
    let linked = match app.engine.linked(&token).await {
        Ok(linked) => linked,
        Err(error) => return refuse(&app, &request, error),
    };
    let Asks::Open(asks) = &linked.asks else { return Ok(show(&linked, None)) };
    let Raw(bytes) = Raw::from_request(request, &app).await?;
    if bytes.len() > MAX_FORM {
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "the form is too long"));
    }
    let sent = Sent::read(&bytes)?;
    let decision = match decision(asks, &sent) {
        Ok(decision) => decision,
        Err(faults) => return Ok(show(&linked, Some((&sent, faults)))),
    };
    let approve = decision.approve;
    Ok(match app.engine.answer_link(&token, decision).await {
        // Somebody else was faster.
        Ok(now @ Linked { asks: Asks::Over(_), .. }) => show(&now, None),
        Ok(now) => html(StatusCode::OK, page::taken(&now, approve)),
        Err(Error::Input { path, message }) => show(&linked, Some((&sent, vec![(path, message)]))),
        Err(Error::Inputs(faults)) => show(&linked, Some((&sent, faults))),
        Err(Error::Conflict(Ignored::OtherDigest)) => {
            let fault = ("digest".to_string(), "this is not what you were shown: look again".to_string());
            show(&linked, Some((&sent, vec![fault])))
        }
        Err(Error::Conflict(_)) => show(&app.engine.linked(&token).await?, None),
        Err(error) => failed(error)?,
    })
}

type Faults = Vec<(String, String)>;

fn decision(asks: &Approval, sent: &Sent) -> Result<Decision, Faults> {
    let approve = match sent.first("decision") {
        Some("approve") => true,
        Some("deny") => false,
        _ => return Err(vec![("decision".into(), "say approve or deny".into())]),
    };
    let data = match asks.asks.get("form").filter(|_| approve) {
        Some(schema) => Some(form::filled(schema, sent)?),
        None => None,
    };
    let comment = sent.first("comment").map(str::trim).filter(|comment| !comment.is_empty()).map(str::to_string);
    Ok(Decision { approve, comment, data, digest: sent.first("digest").map(str::to_string) })
}

/// What is asked, with what was wrong with an answer; or what became of it.
fn show(linked: &Linked, wrong: Option<(&Sent, Faults)>) -> Response {
    match &linked.asks {
        Asks::Over(words) => html(StatusCode::GONE, page::over(linked, words)),
        Asks::Open(asks) => {
            let status = if wrong.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
            html(status, page::asked(linked, asks, wrong.as_ref()))
        }
    }
}

fn refuse(app: &App, request: &Request, error: Error) -> Answer<Response> {
    if matches!(error, Error::NotFound { .. }) {
        guessed(app, request)?;
        return Ok(html(StatusCode::NOT_FOUND, page::words("Nothing is asked at this address.")));
    }
    failed(error)
}

fn failed(error: Error) -> Answer<Response> {
    match error {
        Error::Refused(_) | Error::Forbidden { .. } => {
            Ok(html(StatusCode::FORBIDDEN, page::words(&format!("You may not answer this: {error}."))))
        }
        other => Err(other.into()),
    }
}

fn html(status: StatusCode, text: String) -> Response {
    // Browsers tell where a form comes from only if they may tell this server where they have been.
    let referrer = (HeaderName::from_static("referrer-policy"), "same-origin");
    let robots = (HeaderName::from_static("x-robots-tag"), "noindex");
    let headers = [super::pages::POLICY, (CACHE_CONTROL, "no-store"), referrer, robots];
    (status, headers, Html(text)).into_response()
}
