//! A caller that balances over the copies, and asks another one where that does no harm.

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

/// Header with the name of the copy that answers.
pub const COPY: HeaderName = HeaderName::from_static("x-copy");

/// Longest wait for one copy. A change waits for a lock there.
const LOOK: Duration = Duration::from_millis(500);
const CHANGE: Duration = Duration::from_secs(3);

/// Request that can be sent again: it changes nothing, or is known again by its id.
#[derive(Debug, Clone)]
pub struct Call {
    /// `GET`, or `PUT` with a body.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// JSON, or nothing.
    pub body: Bytes,
}

/// Result of a call.
#[derive(Debug)]
pub struct Answer {
    /// Status of the answer; `None` when no copy gave one.
    pub status: Option<StatusCode>,
    /// Name of the copy that gave it.
    pub copy: Option<String>,
    /// Number of copies that were asked.
    pub attempts: u32,
}

type Http = legacy::Client<HttpConnector, Full<Bytes>>;
type Sent = Request<Full<Bytes>>;
type Copies = BoxCloneSyncService<Sent, Response<Incoming>, BoxError>;

/// Asks copies of the shop.
#[derive(Debug, Clone)]
pub struct Caller {
    shops: Service<()>,
    look: Copies,
    change: Copies,
}

/// Counts the attempts of a request that carries it.
#[derive(Debug, Clone, Default)]
struct Attempts(Arc<AtomicU32>);

impl Caller {
    /// Begins to follow the copies, and waits until it knows them.
    ///
    /// # Errors
    /// When the servers do not tell.
    pub async fn open(client: &Client) -> Result<Self, Error> {
        // One that stands still has more in flight from request to request, and is asked less.
        let shops = Registry::new(client, "/services")?.service_builder("shop");
        let shops = shops.policy(PickPolicy::PowerOfTwo).open().await?;
        Ok(Self { look: copies(&shops, LOOK), change: copies(&shops, CHANGE), shops })
    }

    /// The copies that it knows.
    pub fn shops(&self) -> &Service<()> {
        &self.shops
    }

    /// Asks one copy, and others if it does not answer.
    pub async fn call(&self, call: &Call) -> Answer {
        let attempts = Attempts::default();
        let request = Request::builder()
            .method(&call.method)
            .uri(&call.path)
            .header(header::CONTENT_TYPE, "application/json")
            .extension(attempts.clone())
            .body(Full::new(call.body.clone()))
            .expect("paths of calls are paths");
        let copies = if call.method == Method::GET { &self.look } else { &self.change };
        let response = copies.clone().oneshot(request).await.ok();
        let copy = response.as_ref().and_then(|response| response.headers().get(COPY)?.to_str().ok());
        let (status, copy) = (response.as_ref().map(Response::status), copy.map(str::to_owned));
        if let Some(response) = response {
            // A connection is used again once its response was read.
            let _ = tokio::time::timeout(LOOK, response.into_body().collect()).await;
        }
        Answer { status, copy, attempts: attempts.0.load(Ordering::Relaxed) }
    }
}

/// All copies as one service, which learns who fails.
fn copies(shops: &Service<()>, patience: Duration) -> Copies {
    let http: Http = legacy::Client::builder(TokioExecutor::new()).build_http();
    let balanced = shops
        .balanced(move |copy| ready(copy.uri().map(|uri| Copy { uri, http: http.clone() })))
        // Orders have an id by which they are known again.
        .retry_if(|request: &Sent| request.method().is_idempotent())
        .classify(|answer| match answer {
            // Whoever answers is alive, also when it refuses.
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
        *request.uri_mut() = uri.parse().expect("a path after an authority");
        self.http.request(request)
    }
}
