//! An HTTP server on loopback that echoes every body.

use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use tokio::net::TcpListener;

pub struct Echo {
    pub url: String,
    server: tokio::task::JoinHandle<()>,
}

impl Echo {
    pub async fn start() -> anyhow::Result<Echo> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        Ok(Echo { url, server: tokio::spawn(serve(listener)) })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        // Nagle's algorithm would distort the measured latency.
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new();
            // A client that disconnects is not an error.
            let _ = connection.serve_connection(TokioIo::new(stream), service_fn(echo)).await;
        });
    }
}

async fn echo(request: Request<Incoming>) -> Result<Response<Incoming>, Infallible> {
    let mut response = Response::new(request.into_body());
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    Ok(response)
}
