//! Readiness, as a load balancer asks for it.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::Request;
use std::net::SocketAddr;
use std::sync::Arc;
use stepwell_engine::{Engine, Kinds};
use stepwell_server::config::Config;
use stepwell_server::live::Hub;
use stepwell_server::{App, router};
use stepwell_store::memory::MemoryStore;
use tower::ServiceExt;

async fn ready(app: &App) -> (u16, String) {
    let mut request = Request::get("/readyz").header("host", "localhost").body(Body::empty()).unwrap();
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 1))));
    let response = router(app.clone()).oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    (status, String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_server_is_not_ready_once_a_background_task_is_gone() {
    let config = stepwell_engine::Config::new(Kinds::default());
    let engine = Engine::start(Arc::new(MemoryStore::default()), config).await.unwrap();
    let config = Arc::new(Config::default());
    let hub = Hub::start(engine.clone(), &config.limits);
    let app = App::new(engine.clone(), config, "http://localhost", hub);
    assert_eq!(ready(&app).await.0, 200);
    engine.supervisor().spawn("a loop", || async { panic!("as asked") }).await.unwrap();
    let (status, body) = ready(&app).await;
    assert_eq!(status, 503);
    assert!(body.contains("not-ready") && body.contains("a loop"), "{body}");
}
