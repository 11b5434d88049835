//! The listener: accepts connections and reads requests, within limits that no client can exceed.
//!
//! A client that is slow to send the head is disconnected, and one that is slow to send the body gets 408. Beyond the
//! connection limit, new connections wait in the kernel's queue. On shutdown, idle connections are closed at once, and
//! requests in progress get some time to finish.
//!
//! Not here: TLS (terminate it in a proxy), responses (`axum::Router`), limits on the content of requests.

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

/// Maximum size of a request head, including read-ahead.
const MAX_HEAD: usize = 64 * 1024;
/// How long a client may accept no bytes of a response.
const WRITE_WITHIN: Duration = Duration::from_secs(30);
/// Pause after a failed accept, for example when no file descriptors are left.
const PAUSE: Duration = Duration::from_millis(200);

/// Limits on connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Open connections at a time.
    pub connections: u32,
    /// From the accept, or the end of the previous request, to the end of the next request head.
    pub header_timeout: Duration,
    /// From the end of a request head to the end of its body.
    pub body_timeout: Duration,
    /// How long requests in progress may take after the stop.
    pub drain: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    Draining,
    Over,
}

/// Serves until `stop` completes and all requests have finished or were aborted. Requests carry the peer's address as
/// [`ConnectInfo`]. A connection upgraded to a WebSocket counts until it is closed.
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
            let (socket, peer) = accepted;
            tokio::spawn(server.clone().connection(socket, peer));
        }
    }
    // Closes the socket, so that new connections are refused.
    drop(listener);
    phase.send_replace(Phase::Draining);
    let all = room.acquire_many(limits.connections);
    if timeout(limits.drain, all).await.is_err() {
        tracing::warn!("requests in progress were aborted");
    }
    phase.send_replace(Phase::Over);
}

/// Acquires a permit before the accept, so that further connections stay in the kernel's queue.
async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> (Socket, SocketAddr) {
    let permit = room.clone().acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Responses are small and written at once. Failing to set the option is harmless.
                let _ = stream.set_nodelay(true);
                return (Socket { stream, stuck: None, _permit: permit }, peer);
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
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
    async fn connection(self, socket: Socket, peer: SocketAddr) {
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
                        tracing::debug!(%peer, %error, "connection ended early");
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
    // The handler could not know why the body was cut off.
    Ok(if late.load(Ordering::Relaxed) { too_slow() } else { response })
}

fn too_slow() -> Response<Body> {
    let detail = "the request body did not arrive in time";
    let mut response = Problem::new(StatusCode::REQUEST_TIMEOUT, "request-timeout", detail).into_response();
    // The rest of the body may still arrive, and must not be read as the next request.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A body that fails once its deadline has passed.
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
        // Checked first, so that trickling bytes do not extend the deadline.
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

/// A connection and its permit. The permit stays with the stream, including after an upgrade.
struct Socket {
    stream: TcpStream,
    /// Runs while the client accepts no bytes.
    stuck: Option<Pin<Box<Sleep>>>,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl Socket {
    /// Fails if the client accepts no bytes for too long. It would otherwise hold its connection for ever.
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
