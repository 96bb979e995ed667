//! The HTTP server for monitoring: `/metrics`, `/healthz`, `/readyz`, `/status`, on an address or a unix socket. It
//! reads nothing but counters, so no client can hold up the pipeline. Connections, their duration and their requests
//! are bounded, so no client can hold up another one.

use std::convert::Infallible;
use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};

use super::metrics::{Metrics, Phase};
use super::{families, status};
use crate::socket_file::{self, SocketFile};

/// Most connections at once; a further one waits until one of them has ended.
const MAX_CONNECTIONS: usize = 32;
/// Time in which a request must be complete, or the connection is closed.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// Longest life of a connection; each serves one request.
const CONNECTION_TIME: Duration = Duration::from_secs(10);
/// Most bytes of a request's head; the smallest limit that hyper allows.
const MAX_HEAD_BYTES: usize = 8192;
/// Pause after an accept that failed, as when no descriptor is left.
const REST: Duration = Duration::from_millis(200);

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An address.
    Address(SocketAddr),
    /// The path of a unix socket.
    Socket(PathBuf),
}

/// A running server, which stops when this is dropped.
#[derive(Debug)]
pub struct Server {
    _end: watch::Sender<()>,
    _socket: Option<SocketFile>,
}

enum Listener {
    Address(tokio::net::TcpListener),
    Socket(tokio::net::UnixListener),
}

/// Starts a server on a thread of its own.
///
/// # Errors
/// The address is in use, or the socket cannot be made.
pub fn start(place: &Place, metrics: &'static Metrics) -> io::Result<Server> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let entered = runtime.enter();
    let (listener, socket) = match place {
        Place::Address(address) => (Listener::Address(tokio::net::TcpListener::from_std(bind(*address)?)?), None),
        Place::Socket(path) => bind_socket(path).map(|(listener, file)| (Listener::Socket(listener), Some(file)))?,
    };
    drop(entered);
    let (end, ended) = watch::channel(());
    std::thread::Builder::new().name("http".to_owned()).spawn(move || runtime.block_on(accept(listener, metrics, ended)))?;
    Ok(Server { _end: end, _socket: socket })
}

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Makes a socket that only the owner and the group may use.
fn bind_socket(path: &Path) -> io::Result<(tokio::net::UnixListener, SocketFile)> {
    socket_file::create(path, |path| tokio::net::UnixListener::bind(path), |path| std::fs::set_permissions(path, Permissions::from_mode(0o660)))
}

async fn accept(listener: Listener, metrics: &'static Metrics, mut ended: watch::Receiver<()>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        // Never fails: the semaphore is never closed.
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            _ = ended.changed() => return,
            accepted = async {
                match &listener {
                    Listener::Address(listener) => listener.accept().await.map(|(stream, _)| Stream::Address(stream)),
                    Listener::Socket(listener) => listener.accept().await.map(|(stream, _)| Stream::Socket(stream)),
                }
            } => accepted,
        };
        match accepted {
            Ok(stream) => drop(tokio::spawn(async move {
                match stream {
                    Stream::Address(stream) => serve(stream, metrics).await,
                    Stream::Socket(stream) => serve(stream, metrics).await,
                }
                drop(place);
            })),
            Err(error) => {
                tracing::debug!("http: {error}");
                tokio::time::sleep(REST).await;
            }
        }
    }
}

enum Stream {
    Address(tokio::net::TcpStream),
    Socket(tokio::net::UnixStream),
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, metrics: &'static Metrics) {
    let answering = service_fn(|request| async move { Ok::<_, Infallible>(answer(&request, metrics)) });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIME).max_buf_size(MAX_HEAD_BYTES).half_close(false).keep_alive(false);
    let connection = server.serve_connection(TokioIo::new(stream), answering);
    if let Ok(Err(error)) = tokio::time::timeout(CONNECTION_TIME, connection).await {
        tracing::debug!("http: {error}");
    }
}

/// Returns the answer to a request; the body of the request is never read.
fn answer<B>(request: &Request<B>, metrics: &Metrics) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = respond(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n".to_owned());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/metrics" => respond(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", families::page(metrics)),
        "/healthz" => verdict(metrics.illness().map(str::to_owned)),
        "/readyz" => verdict(unready(metrics)),
        "/status" => respond(StatusCode::OK, "application/json", format!("{}\n", status::document(metrics, now_us()))),
        _ => respond(StatusCode::NOT_FOUND, TEXT, "there are /metrics, /healthz, /readyz and /status\n".to_owned()),
    }
}

/// Why the daemon is not ready, if it is not.
fn unready(metrics: &Metrics) -> Option<String> {
    match metrics.phase() {
        Phase::Starting => Some("starting: state, sources and sinks are being opened".to_owned()),
        Phase::Stopping => Some("stopping".to_owned()),
        Phase::Ready => metrics.trouble(),
    }
}

fn verdict(trouble: Option<String>) -> Response<Full<Bytes>> {
    let code = if trouble.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    respond(code, "text/plain; charset=utf-8", format!("{}\n", trouble.as_deref().unwrap_or("ok")))
}

fn respond(code: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(method: Method, path: &str, metrics: &Metrics) -> u16 {
        let request = Request::builder().method(method).uri(path).body(()).unwrap();
        answer(&request, metrics).status().as_u16()
    }

    #[test]
    fn health_and_readiness_follow_the_counters() {
        let metrics = Metrics::default();
        let codes = |metrics: &Metrics| ["/healthz", "/readyz"].map(|path| code(Method::GET, path, metrics));
        assert_eq!(codes(&metrics), [200, 503], "it starts");
        metrics.set_phase(Phase::Ready);
        assert_eq!(codes(&metrics), [200, 200]);
        metrics.is_stalled.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(codes(&metrics), [503, 503]);
        metrics.is_stalled.store(false, std::sync::atomic::Ordering::Relaxed);
        let ready = |metrics: &Metrics| families::page(metrics).contains("\nsiftd_ready 1\n");
        assert!(ready(&metrics) && metrics.state() == "ready");
        metrics.state_trouble.set("its disk is full");
        assert_eq!(codes(&metrics), [200, 503], "a start anew would mend nothing");
        assert!(!ready(&metrics) && metrics.state() == "not_ready", "all answers are one");
        metrics.state_trouble.clear();
        assert_eq!(codes(&metrics), [200, 200]);
        metrics.set_phase(Phase::Stopping);
        assert_eq!(codes(&metrics), [200, 503]);
        assert_eq!([code(Method::POST, "/metrics", &metrics), code(Method::GET, "/x", &metrics), code(Method::HEAD, "/metrics", &metrics)], [405, 404, 200]);
    }
}
