use super::load::Caller;
use docent::discovery::{AttemptPolicy, Outcome};
use docent::{Instance, Service};
use futures_util::FutureExt;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::ServiceExt;

/// Whether a request may be repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Safe,
    Unsafe,
}

fn policy(timeout: Duration) -> AttemptPolicy {
    AttemptPolicy::default().timeout(timeout)
}

/// Returns a function that sends HTTP or gRPC requests to the copies of a view.
pub(super) fn caller(view: &Service<String>, protocol: &str, kind: Kind, timeout: Duration) -> Caller {
    match protocol {
        "http" => http(view, kind, timeout),
        _ => grpc(view, kind, timeout),
    }
}

type Get = Request<Empty<Bytes>>;

/// Connects to one instance with a hyper client, which establishes its connections on its own.
async fn connect(
    instance: Arc<Instance<String>>,
) -> Result<
    impl tower::Service<Get, Response = Response<Incoming>, Error = Error, Future: Send> + Clone + Send,
    Infallible,
> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let uri = instance.uri().expect("the instance has an address");
    Ok(tower::service_fn(move |mut request: Get| {
        *request.uri_mut() =
            format!("{uri}{}", request.uri().path()).parse().expect("the parts form a valid URI");
        client.request(request)
    }))
}

fn http(view: &Service<String>, kind: Kind, timeout: Duration) -> Caller {
    let orders = view
        .balanced(connect)
        .attempt_policy(policy(timeout))
        .retry_if(|request: &Get| request.method().is_safe())
        .classify(|answer| match answer {
            Ok(response) => Outcome::of_status(response.status().as_u16()),
            Err(error) if error.is_connect() => Outcome::Unsent,
            Err(_) => Outcome::Failed,
        });
    let method = if kind == Kind::Safe { Method::GET } else { Method::POST };
    Arc::new(move || {
        let request = Request::builder().method(&method).uri("/1").body(Empty::new()).unwrap();
        let orders = orders.clone();
        async move {
            let response = orders.oneshot(request).await.map_err(|error| error.to_string())?;
            let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
            Ok(String::from_utf8(body.to_bytes().to_vec()).unwrap())
        }
        .boxed()
    })
}

fn grpc(view: &Service<String>, kind: Kind, timeout: Duration) -> Caller {
    let channel = view
        .channel()
        .attempt_policy(policy(timeout))
        .retry_if(move |method| kind == Kind::Safe && method == "/grpc.health.v1.Health/Check");
    let client = HealthClient::new(channel);
    Arc::new(move || {
        let mut client = client.clone();
        async move {
            let request = HealthCheckRequest { service: "orders".to_owned() };
            let response = client.check(request).await.map_err(|status| status.to_string())?;
            Ok(response.metadata().get("id").unwrap().to_str().unwrap().to_owned())
        }
        .boxed()
    })
}

/// Sends requests until `id` answers one.
pub(super) async fn until_answered_by(call: &Caller, id: &str) {
    while call().await.as_deref() != Ok(id) {}
}
