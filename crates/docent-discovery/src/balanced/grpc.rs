use super::Outcome;
use super::link::Cause;
use super::replay::Replayed;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::Response;
use http_body::{Frame, SizeHint};
use std::error::Error;
use std::fmt;
use std::iter::successors;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, ConnectError, Status};

/// A gRPC connection to one instance.
#[derive(Clone)]
pub(super) struct GrpcLink(Channel);

impl GrpcLink {
    pub(super) async fn connect(endpoint: Endpoint) -> Result<Self, Cause> {
        endpoint.connect().await.map(Self).map_err(|error| Arc::new(error) as Cause)
    }
}

/// Error of a connection.
pub(super) struct GrpcError {
    pub(super) error: tonic::transport::Error,
    /// True if nothing was sent, so that the request can still be sent.
    is_unsent: bool,
}

impl tower::Service<Replayed> for GrpcLink {
    type Response = Response<Body>;
    type Error = GrpcError;
    type Future = BoxFuture<'static, Result<Response<Body>, GrpcError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), GrpcError>> {
        let ready = tower::Service::<http::Request<Body>>::poll_ready(&mut self.0, cx);
        ready.map_err(|error| GrpcError { error, is_unsent: true })
    }

    fn call(&mut self, request: Replayed) -> Self::Future {
        let (request, recording) = request.into_request();
        let response = self.0.call(request);
        async move {
            response.await.map_err(|error| {
                let is_unsent = is_unconnected(&error) && recording.is_whole();
                GrpcError { error, is_unsent }
            })
        }
        .boxed()
    }
}

/// Returns true for an error of opening a connection: the channel reconnects automatically.
fn is_unconnected(error: &(dyn Error + 'static)) -> bool {
    successors(Some(error), |&error| error.source()).any(<dyn Error>::is::<ConnectError>)
}

/// Returns the outcome of an attempt; `fails` is true for the codes that count as failure of the instance.
pub(super) fn outcome(
    answer: Result<&Response<Body>, &GrpcError>,
    fails: &(dyn Fn(Code) -> bool + Send + Sync),
) -> Outcome {
    let response = match answer {
        Ok(response) => response,
        Err(GrpcError { is_unsent: true, .. }) => return Outcome::Unsent,
        Err(_) => return Outcome::Failed,
    };
    match Status::from_header_map(response.headers()) {
        Some(status) if fails(status.code()) => Outcome::Failed,
        Some(_) => Outcome::Succeeded,
        None => Outcome::of_status(response.status().as_u16()),
    }
}

/// Body of a response that holds a value until the body has ended or is dropped.
pub(super) struct HeldBody<H> {
    body: Body,
    held: Option<H>,
}

impl<H: Send + Unpin + 'static> HeldBody<H> {
    pub(super) fn put(response: Response<Body>, held: H) -> Response<Body> {
        response.map(|body| Body::new(Self { body, held: Some(held) }))
    }
}

impl<H: Unpin> http_body::Body for HeldBody<H> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.held = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl fmt::Display for GrpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_fails_by_code_or_by_the_status_of_a_gateway() {
        let outcome_of = |http: u16, code: Option<&str>| {
            let response = Response::builder().status(http);
            let response =
                code.into_iter().fold(response, |response, code| response.header("grpc-status", code));
            let response = response.body(Body::empty()).unwrap();
            outcome(Ok(&response), &|code| code == Code::Unavailable)
        };
        assert_eq!(outcome_of(200, None), Outcome::Succeeded);
        assert_eq!(outcome_of(200, Some("5")), Outcome::Succeeded);
        assert_eq!(outcome_of(200, Some("14")), Outcome::Failed);
        assert_eq!(outcome_of(503, None), Outcome::Failed);
    }
}
