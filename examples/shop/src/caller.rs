//! A caller that balances over the copies, and retries with another copy if that is safe.

use axum::body::Bytes;
use axum::http::{HeaderName, Method, Request, Response, StatusCode, header};
use docent::discovery::{AttemptPolicy, Outcome, PickPolicy};
use docent::{Client, Error, Registry, Service};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, ResponseFuture};
use hyper_util::rt::TokioExecutor;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt};

/// Header with the name of the answering copy.
pub const COPY: HeaderName = HeaderName::from_static("x-copy");

/// Maximum wait for one copy. A change waits for a lock there.
const READ_TIMEOUT: Duration = Duration::from_millis(500);
const WRITE_TIMEOUT: Duration = Duration::from_secs(3);

/// Request that may be sent again: it changes nothing, or is recognized by its id.
#[derive(Debug, Clone)]
pub struct Call {
    /// `GET`, or `PUT` with a body.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// JSON, or empty.
    pub body: Bytes,
}

/// Result of a call.
#[derive(Debug)]
pub struct Answer {
    /// Status of the answer; `None` if no copy answered.
    pub status: Option<StatusCode>,
    /// Name of the copy that answered.
    pub copy: Option<String>,
    /// Number of copies that were called.
    pub attempts: u32,
}

type Http = legacy::Client<HttpConnector, Full<Bytes>>;
type Sent = Request<Full<Bytes>>;
type Copies = BoxCloneSyncService<Sent, Response<Incoming>, BoxError>;

/// Caller of the shop's copies.
#[derive(Debug, Clone)]
pub struct Caller {
    shops: Service<()>,
    reads: Copies,
    writes: Copies,
}

/// Counter of the attempts of the request that carries it.
#[derive(Debug, Clone, Default)]
struct Attempts(Arc<AtomicU32>);

impl Caller {
    /// Starts to follow the copies, and waits until it knows them.
    ///
    /// # Errors
    /// If the servers do not return the list of copies.
    pub async fn open(client: &Client) -> Result<Self, Error> {
        // A stalled copy accumulates requests in flight, so it gets fewer new ones.
        let shops = Registry::new(client, "/services")?.service_builder("shop");
        let shops = shops.policy(PickPolicy::PowerOfTwo).open().await?;
        Ok(Self { reads: copies(&shops, READ_TIMEOUT), writes: copies(&shops, WRITE_TIMEOUT), shops })
    }

    /// Returns the known copies.
    pub fn shops(&self) -> &Service<()> {
        &self.shops
    }

    /// Calls one copy, and others if it does not answer.
    pub async fn call(&self, call: &Call) -> Answer {
        let attempts = Attempts::default();
        let request = Request::builder()
            .method(&call.method)
            .uri(&call.path)
            .header(header::CONTENT_TYPE, "application/json")
            .extension(attempts.clone())
            .body(Full::new(call.body.clone()))
            .expect("the path of a call is a valid path");
        let copies = if call.method == Method::GET { &self.reads } else { &self.writes };
        let response = copies.clone().oneshot(request).await.ok();
        let copy = response.as_ref().and_then(|response| response.headers().get(COPY)?.to_str().ok());
        let (status, copy) = (response.as_ref().map(Response::status), copy.map(str::to_owned));
        if let Some(response) = response {
            // A connection is reused only after its response was read.
            let _ = tokio::time::timeout(READ_TIMEOUT, response.into_body().collect()).await;
        }
        Answer { status, copy, attempts: attempts.0.load(Ordering::Relaxed) }
    }
}

/// Returns all copies as one service, which learns which copies fail.
fn copies(shops: &Service<()>, patience: Duration) -> Copies {
    let http: Http = legacy::Client::builder(TokioExecutor::new()).build_http();
    let balanced = shops
        .balanced(move |copy| ready(copy.uri().map(|uri| Copy { uri, http: http.clone() })))
        // Orders have an id by which they are recognized.
        .retry_if(|request: &Sent| request.method().is_idempotent())
        .classify(|answer| match answer {
            // Any copy that answers is alive, even if it refuses the request.
            Ok(_) => Outcome::Succeeded,
            Err(error) if error.is_connect() => Outcome::Unsent,
            Err(_) => Outcome::Failed,
        })
        .attempt_policy(AttemptPolicy::default().timeout(patience));
    BoxCloneSyncService::new(balanced.map_err(BoxError::from))
}

/// One copy as a service.
#[derive(Debug, Clone)]
struct Copy {
    uri: String,
    http: Http,
}

impl tower::Service<Sent> for Copy {
    type Response = Response<Incoming>;
    type Error = legacy::Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), legacy::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Sent) -> ResponseFuture {
        if let Some(attempts) = request.extensions().get::<Attempts>() {
            attempts.0.fetch_add(1, Ordering::Relaxed);
        }
        let uri = format!("{}{}", self.uri, request.uri());
        *request.uri_mut() = uri.parse().expect("an authority followed by a path is a valid URI");
        self.http.request(request)
    }
}
