use super::certificate::Certificate;
use super::stalled::Stalled;
use crate::app::App;
use crate::child::Signals;
use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::Service;

/// Maximum number of connections. Further ones wait.
const CONNECTIONS: usize = 1_024;

/// Maximum time for the header of a request, and between requests of a connection.
const HEADER: Duration = Duration::from_secs(10);

/// Maximum time for opening TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Time at the end for replies that have begun. Event streams have no end of their own, and are cut.
const LAST_REPLIES: Duration = Duration::from_secs(2);

/// Pause after a connection could not be accepted, for example because there is no free descriptor.
const PAUSE: Duration = Duration::from_millis(100);

/// A page and where it is served.
pub(super) struct Server {
    pub(super) listener: TcpListener,
    pub(super) certificate: Option<Certificate>,
    pub(super) router: Router,
}

/// What every connection is served with.
#[derive(Clone)]
struct Serving {
    router: Router,
    /// Changes when no further request is read.
    ending: watch::Receiver<()>,
}

/// Serves the page until a signal comes. Replies that have begun get two seconds, and a second signal cuts
/// them.
pub(super) async fn serve(mut server: Server, app: &App, signals: &mut Signals) {
    let (end, ending) = watch::channel(());
    let serving = Serving { router: server.router.clone(), ending };
    let mut connections = JoinSet::new();
    tokio::select! {
        _ = signals.next() => {}
        () = accept(&mut server, app, &serving, &mut connections) => {}
    }
    drop(server);
    drop(end);
    let finished = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        _ = timeout(LAST_REPLIES, finished) => {}
        _ = signals.next() => {}
    }
}

/// Accepts connections endlessly.
async fn accept(server: &mut Server, app: &App, serving: &Serving, connections: &mut JoinSet<()>) {
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let permit = Arc::clone(&free).acquire_owned().await.expect("the semaphore is never closed");
        let Ok((stream, peer)) = server.listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let tls = server.certificate.as_mut().map(|certificate| {
            let (acceptor, failure) = certificate.acceptor();
            if let Some(failure) = failure {
                app.output.remark(format!("{failure}; keeping the certificate that was read last"));
            }
            acceptor
        });
        connections.spawn(connection(stream, peer, tls, serving.clone(), permit));
        while connections.try_join_next().is_some() {}
    }
}

/// Serves a connection. Its errors concern only its client.
async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    serving: Serving,
    _permit: OwnedSemaphorePermit,
) {
    // Events are small, and must not wait for each other.
    let _ = stream.set_nodelay(true);
    let stream = Stalled::new(stream);
    match tls {
        None => requests(stream, peer, serving).await,
        Some(acceptor) => {
            if let Ok(Ok(stream)) = timeout(HANDSHAKE, acceptor.accept(stream)).await {
                requests(stream, peer, serving).await;
            }
        }
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: SocketAddr,
    Serving { router, mut ending }: Serving,
) {
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        // A router is always ready.
        router.clone().call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = &mut connection => return,
        _ = ending.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_its_header_slowly_is_dropped() {
        let (server, mut client) = duplex(1 << 10);
        let (_end, ending) = watch::channel(());
        let serving = Serving { router: Router::new(), ending };
        tokio::spawn(requests(server, SocketAddr::from(([127, 0, 0, 1], 1)), serving));
        let began = tokio::time::Instant::now();
        for byte in b"GET / HTTP" {
            client.write_all(&[*byte]).await.unwrap();
            tokio::time::advance(Duration::from_millis(900)).await;
        }
        let mut reply = Vec::new();
        timeout(HEADER, client.read_to_end(&mut reply)).await.expect("the link must be closed").unwrap();
        assert!(began.elapsed() <= HEADER + Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_does_not_end_is_dropped() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let (_end, ending) = watch::channel(());
        let serving = Serving { router: Router::new(), ending };
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = tokio_rustls::rustls::ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let resolver = tokio_rustls::rustls::server::ResolvesServerCertUsingSni::new();
        let tls = TlsAcceptor::from(Arc::new(config.with_cert_resolver(Arc::new(resolver))));
        let free = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&free).acquire_owned().await.unwrap();
        tokio::spawn(connection(stream, peer, Some(tls), serving, permit));
        let began = tokio::time::Instant::now();
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0, "the link must be closed");
        assert!(began.elapsed() <= HANDSHAKE + Duration::from_secs(1), "{:?}", began.elapsed());
        assert_eq!(free.available_permits(), 1);
    }
}
