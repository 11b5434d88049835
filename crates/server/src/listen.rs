//! The listener: connections to requests, within bounds that no client can stretch.
//!
//! A client that is slow with its head is cut off, one that is slow with its body gets 408, and beyond a number of
//! connections the next ones wait in the system's queue. When the server stops, connections that only wait for another
//! request are closed at once, and requests under way have a while to end.
//!
//! Not here: TLS (a proxy's), what is answered (`axum::Router`), limits on what a request holds.

use crate::error::Problem;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tower::ServiceExt;

/// Bytes of a request's head, and of what is read ahead of it.
const MAX_HEAD: usize = 64 * 1024;
/// How long a client may take nothing of what it is sent.
const WRITE_WITHIN: Duration = Duration::from_secs(30);
/// After a connection could not be taken, as when there are no file descriptors left.
const PAUSE: Duration = Duration::from_millis(200);

/// What connections may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Open at a time.
    pub connections: u32,
    /// From the first moment, or the end of the last request, to the whole head of the next one.
    pub header_timeout: Duration,
    /// From the head of a request to the end of its body.
    pub body_timeout: Duration,
    /// From the stop to the end of requests that are under way then.
    pub drain: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    Draining,
    Over,
}

/// Serves until `stop` comes and what was under way has ended, or was cut off. Requests carry the peer's address as
/// [`ConnectInfo`]. A connection that became a WebSocket counts until it is closed.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: impl Future<Output = ()>) {
    let (phase, phases) = watch::channel(Phase::Serving);
    let room = Arc::new(Semaphore::new(limits.connections as usize));
    let server = Server { router, limits, phases };
    {
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = accept(&listener, &room) => accepted,
            };
            tokio::spawn(server.clone().connection(accepted));
        }
    }
    // Nobody is accepted any more, and whoever tries is told so.
    drop(listener);
    phase.send_replace(Phase::Draining);
    let all = room.acquire_many(limits.connections);
    if timeout(limits.drain, all).await.is_err() {
        tracing::warn!("requests under way were cut off");
    }
    phase.send_replace(Phase::Over);
}

/// Waits for room first: whoever comes meanwhile stays in the system's queue.
async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> (Socket, SocketAddr) {
    let permit = room.clone().acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are small and go out whole; a socket without this option works too.
                let _ = stream.set_nodelay(true);
                return (Socket { stream, stuck: None, _permit: permit }, peer);
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[derive(Clone)]
struct Server {
    router: Router,
    limits: Limits,
    phases: watch::Receiver<Phase>,
}

impl Server {
    async fn connection(self, (socket, peer): (Socket, SocketAddr)) {
        let Server { router, limits, mut phases } = self;
        let service =
            hyper::service::service_fn(move |request| answer(router.clone(), request, peer, limits.body_timeout));
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_timeout)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(socket), service)
            .with_upgrades();
        let mut connection = pin!(connection);
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%peer, %error, "a connection ended early");
                    }
                    return;
                }
                changed = phases.changed() => {
                    let phase = *phases.borrow_and_update();
                    if changed.is_err() || phase == Phase::Over {
                        return;
                    }
                    if phase == Phase::Draining {
                        connection.as_mut().graceful_shutdown();
                    }
                }
            }
        }
    }
}

async fn answer(
    router: Router,
    mut request: Request<Incoming>,
    peer: SocketAddr,
    patience: Duration,
) -> Result<Response<Body>, Infallible> {
    request.extensions_mut().insert(ConnectInfo(peer));
    if request.body().is_end_stream() {
        return router.oneshot(request.map(Body::new)).await;
    }
    let late = Arc::new(AtomicBool::new(false));
    let flag = late.clone();
    let deadline = Instant::now() + patience;
    let request = request.map(|body| Body::new(Timed { body, sleep: Box::pin(sleep_until(deadline)), late: flag }));
    let response = router.oneshot(request).await?;
    // Whoever read the body could not know why it broke off.
    Ok(if late.load(Ordering::Relaxed) { too_slow() } else { response })
}

fn too_slow() -> Response<Body> {
    let detail = "the request body did not arrive in time";
    let mut response = Problem::new(StatusCode::REQUEST_TIMEOUT, "request-timeout", detail).into_response();
    // The rest of the body may still arrive, and must not be read as the next request.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A body that breaks off when its time is over.
struct Timed {
    body: Incoming,
    sleep: Pin<Box<Sleep>>,
    late: Arc<AtomicBool>,
}

impl HttpBody for Timed {
    type Data = <Incoming as HttpBody>::Data;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        // Looked at first: bytes that trickle in must not put the end off.
        if self.sleep.as_mut().poll(context).is_ready() {
            self.late.store(true, Ordering::Relaxed);
            return Poll::Ready(Some(Err("the body did not arrive in time".into())));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection and its place among those that may be open. The place goes with the stream, also into an upgrade.
struct Socket {
    stream: TcpStream,
    /// Runs while the client takes nothing.
    stuck: Option<Pin<Box<Sleep>>>,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl Socket {
    /// A client that takes nothing for too long is given up: it would hold its connection for ever.
    fn patient<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + WRITE_WITHIN)));
        match stuck.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.patient(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.patient(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
