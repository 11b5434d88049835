//! The server from start to shutdown: router, listener, drain.

use crate::app::App;
use crate::config::Config;
use crate::error::Problem;
use crate::live::Hub;
use crate::near::Routes;
use crate::{anchor, guard, keys, listen, live, mcp, metrics, otlp, rest, ui};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::{Router, middleware};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stepwell_engine::{Caller, Engine, Error, Limits, Plans};
use stepwell_store::Store;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tower_http::compression::CompressionLayer;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, Info, OpenApi};
use utoipa_axum::router::OpenApiRouter;

/// The API: its router and its OpenAPI description.
fn parts() -> (Router<App>, OpenApi) {
    let (router, mut api) = OpenApiRouter::new().merge(rest::router()).merge(live::router()).split_for_parts();
    api.info = Info::new("Stepwell", env!("CARGO_PKG_VERSION"));
    let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    api.components.get_or_insert_with(|| ComponentsBuilder::new().build()).add_security_scheme("key", scheme);
    api.security = Some(vec![SecurityRequirement::new("key", Vec::<String>::new())]);
    (router, api)
}

/// What the routes say of themselves; `description` adds what clients need besides.
pub fn api() -> OpenApi {
    parts().1
}

/// The router of the whole server.
pub fn router(app: App) -> Router {
    let (router, api) = parts();
    let cors = cors(&app.config);
    let routes = Arc::new(Routes::of(&api));
    router
        .merge(rest::pages())
        .merge(mcp::router(&app))
        .merge(ui::router())
        .fallback(move |uri: Uri| {
            let problem = Problem::not_found(routes.missing(uri.path()));
            async move { problem }
        })
        .method_not_allowed_fallback(async || StatusCode::METHOD_NOT_ALLOWED)
        .layer(cors)
        .layer(middleware::from_fn_with_state(app.clone(), guard::own_host))
        .layer(middleware::from_fn_with_state(app.clone(), guard::trace_request))
        // Outside trace_request, which may replace the body of a response.
        .layer(CompressionLayer::new())
        .layer(middleware::from_fn(metrics::count))
        .with_state(app)
}

/// Other origins are allowed only if configured, and then with an API key, not with a cookie.
fn cors(config: &Config) -> CorsLayer {
    let origins: Vec<HeaderValue> = config.cors.origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    if origins.is_empty() {
        return CorsLayer::new();
    }
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_headers(AllowHeaders::mirror_request())
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .max_age(Duration::from_secs(600))
}

/// Reported to the caller once the server is listening.
pub struct Served {
    pub address: SocketAddr,
    pub public_url: String,
    /// A one-time sign-in link for a browser, returned on the first start.
    pub link: Option<String>,
}

/// The parts of a server.
pub struct Server<'a> {
    pub config: Config,
    pub store: Arc<dyn Store>,
    /// The step kinds and everything else that the configuration does not cover.
    pub engine: stepwell_engine::Config,
    /// Directory of the first API keys.
    pub directory: &'a Path,
}

/// Serves until `stop` completes, then drains.
pub async fn serve(
    server: Server<'_>,
    started: impl FnOnce(&Served),
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let Server { config, store, mut engine, directory } = server;
    let cannot = |error: std::io::Error| Error::Unavailable(format!("cannot listen on {}: {error}", config.listen));
    let listener = TcpListener::bind(config.listen).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let public_url = config.public_url(address);
    let handle = metrics::install()
        .map_err(|error| Error::Unavailable(format!("cannot install the metrics recorder: {error}")))?;
    engine.base_url = public_url.clone();
    engine.slots = config.slots.get();
    engine.slots_per_org = config.slots_per_organisation.map(Into::into);
    engine.plans = plans(&config);
    engine.budget.run_bytes = config.limits.run_bytes;
    engine.traced = config.otlp.is_some();
    config.node.give(&mut engine);
    let engine = Engine::start(store.clone(), engine).await?;
    let first = keys::first(&engine, directory, config.admin_key.as_ref()).await?;
    let hub = Hub::start(engine.clone(), &config.limits);
    let config = Arc::new(config);
    let app = App::new(engine.clone(), config.clone(), &public_url, hub.clone());
    let (stopped, stopping) = watch::channel(false);
    let stops = move || {
        let mut stopping = stopping.clone();
        async move {
            // The link is valid once and cannot be shown later.
            let _ = stopping.wait_for(|stopped| *stopped).await;
        }
    };
    // The last spans come from work that finishes during the shutdown.
    let (ended, over) = watch::channel(());
    let exporter = match &config.otlp {
        Some(to) => {
            let exporter = otlp::Exporter::new(&engine, to, otlp::Intervals::default()).await;
            let exporter = exporter.map_err(|error| Error::Unavailable(format!("traces: {error}")))?;
            let exporter = Arc::new(Mutex::new(exporter));
            Some(engine.supervisor().spawn("traces", move || {
                let (exporter, mut over) = (exporter.clone(), over.clone());
                async move { exporter.lock().await.run(async { while over.changed().await.is_ok() {} }).await }
            }))
        }
        None => None,
    };
    let anchors = config.anchor.clone().map(|to| {
        let (anchored, stops) = (engine.clone(), stops.clone());
        engine.supervisor().spawn("anchors", move || anchor::run(anchored.clone(), to.clone(), stops()))
    });
    let (kept, stop_upkeep) = (handle.clone(), stops.clone());
    let upkeep = engine.supervisor().spawn("metrics", move || metrics::upkeep(kept.clone(), stop_upkeep()));
    let endpoint = metrics::Endpoint::new(handle, store, config.metrics.token.clone());
    let router = router(app).merge(endpoint.router());
    let link = match first {
        true => {
            Some(format!("{public_url}/sign-in/{}", engine.users(&Caller::local("admin")).sign_in_link(None).await?))
        }
        false => None,
    };
    started(&Served { address, link, public_url });
    let limits = listen::Limits {
        connections: config.limits.connections.get(),
        header_timeout: Duration::from_millis(config.limits.header_timeout.0),
        body_timeout: Duration::from_millis(config.limits.body_timeout.0),
        drain: Duration::from_millis(config.drain.0),
    };
    let served = tokio::spawn(listen::serve(listener, router, limits, stops()));
    stop.await;
    tracing::info!("stopping: running work has {} to finish", config.drain);
    engine.drain();
    hub.stop();
    let _ = stopped.send(true);
    engine.shutdown(Duration::from_millis(config.drain.0)).await;
    drop(ended);
    // The tasks end by themselves after the signal; one that panicked has already ended.
    let _ = served.await;
    let _ = upkeep.await;
    if let Some(anchors) = anchors {
        let _ = anchors.await;
    }
    if let Some(exporter) = exporter {
        let _ = exporter.await;
    }
    Ok(())
}

fn plans(config: &Config) -> Plans {
    let most = |limit: Option<u64>| limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
    let plan = |plan: &crate::config::Plan| Limits {
        workflows: most(plan.workflows),
        tasks_per_workflow: most(plan.tasks_per_workflow),
        concurrent_runs: most(plan.concurrent_runs),
        executions_per_month: plan.executions_per_month,
        descendants_per_run: most(plan.descendants_per_run),
        run_bytes: plan.run_bytes,
        no_cron: !plan.cron,
    };
    let by_name = config.plans.iter().map(|(name, limits)| (name.clone(), plan(limits))).collect();
    let descendants_per_run = config.descendants_per_run.get();
    Plans { by_name, default: config.default_plan.clone(), descendants_per_run }
}
