//! Servers on loopback: one that responds properly and records its requests, and raw sockets for everything else.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Method, Request, Response, Uri};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// One request as it arrived.
#[derive(Clone)]
pub struct Seen {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub from: SocketAddr,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub async fn answering(answer: impl Fn(&Seen) -> Response<Body> + Clone + Send + Sync + 'static) -> Server {
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let log = Arc::clone(&seen);
        let handler = async move |ConnectInfo(from): ConnectInfo<SocketAddr>, request: Request<Body>| {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            let seen = Seen { method: parts.method, uri: parts.uri, headers: parts.headers, body, from };
            log.lock().unwrap().push(seen.clone());
            answer(&seen)
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(handler).into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Server { url, seen }
    }

    /// A server that always sends this response.
    pub async fn responding(
        status: u16,
        headers: &'static [(&'static str, &'static str)],
        body: &'static str,
    ) -> Server {
        Server::answering(move |_| response(status, headers, body)).await
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The only request it received.
    pub fn only(&self) -> Seen {
        let mut seen = self.seen();
        assert_eq!(seen.len(), 1);
        seen.remove(0)
    }
}

pub fn response(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}

/// Accepts one connection and passes it on after the head of a request. The task returns the result of `answer`.
pub async fn raw<F, T>(answer: impl FnOnce(TcpStream) -> F + Send + 'static) -> (String, JoinHandle<T>)
where
    F: Future<Output = T> + Send,
    T: Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await.unwrap());
        }
        answer(socket).await
    });
    (url, task)
}

/// Sends exactly these bytes and closes the connection.
pub async fn raw_bytes(bytes: &'static [u8]) -> String {
    let (url, _) = raw(async move |mut socket: TcpStream| {
        socket.write_all(bytes).await.unwrap();
        socket.shutdown().await.unwrap();
    })
    .await;
    url
}

/// A port that refuses connections while the socket is held: bound, but not listening.
pub fn dead() -> (String, TcpSocket) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    (format!("http://{}", socket.local_addr().unwrap()), socket)
}
