use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request};
use http_body::{Body as _, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tonic::Status;
use tonic::body::Body;

/// A gRPC request that can be sent more than once. Its copies share one body, which belongs to the copy that
/// was sent last.
#[derive(Clone)]
pub(super) struct Replayed {
    parts: Parts,
    recording: Recording,
}

impl Replayed {
    /// Creates a request. With `keeps`, the body's frames are kept, so that it can be sent again after
    /// sending has started.
    pub(super) fn new(request: Request<Body>, keeps: bool) -> Self {
        let (parts, rest) = request.into_parts();
        let frames = Frames { rest, kept: Vec::new(), keeps, is_started: false, turn: 0 };
        Self { parts, recording: Recording(Arc::new(Mutex::new(frames))) }
    }

    /// Returns true if the body is kept.
    pub(super) fn keeps(&self) -> bool {
        self.recording.lock().keeps
    }

    /// Returns the request to send, and its recording. Bodies of earlier requests end with an error.
    pub(super) fn into_request(self) -> (Request<Body>, Recording) {
        let turn = {
            let mut frames = self.recording.lock();
            frames.turn += 1;
            frames.turn
        };
        let body = ReplayBody { recording: self.recording.clone(), turn, next: 0 };
        (Request::from_parts(self.parts, Body::new(body)), self.recording)
    }
}

/// Body of a request: the frames sent so far, and the rest.
#[derive(Clone)]
pub(super) struct Recording(Arc<Mutex<Frames>>);

impl Recording {
    /// Returns true if the body can be sent from its beginning.
    pub(super) fn is_whole(&self) -> bool {
        let frames = self.lock();
        frames.keeps || !frames.is_started
    }

    fn lock(&self) -> MutexGuard<'_, Frames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Frames {
    rest: Body,
    kept: Vec<Kept>,
    keeps: bool,
    is_started: bool,
    /// Number of the request that the body belongs to.
    turn: u64,
}

/// A frame that was sent.
#[derive(Clone)]
enum Kept {
    Data(Bytes),
    Trailers(HeaderMap),
}

impl Frames {
    /// Returns the frame with this number: a kept one, or otherwise the next of the rest.
    fn poll(&mut self, number: usize, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(kept) = self.kept.get(number) {
            return Poll::Ready(Some(Ok(kept.clone().into())));
        }
        self.is_started = true;
        let frame = match ready!(Pin::new(&mut self.rest).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            end => return Poll::Ready(end),
        };
        if !self.keeps {
            return Poll::Ready(Some(Ok(frame)));
        }
        let kept = match frame.into_data() {
            Ok(data) => Kept::Data(data),
            Err(frame) => Kept::Trailers(frame.into_trailers().unwrap_or_default()),
        };
        self.kept.push(kept.clone());
        Poll::Ready(Some(Ok(kept.into())))
    }
}

impl From<Kept> for Frame<Bytes> {
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Data(data) => Frame::data(data),
            Kept::Trailers(trailers) => Frame::trailers(trailers),
        }
    }
}

/// Body of one request among the copies.
struct ReplayBody {
    recording: Recording,
    turn: u64,
    /// Number of its next frame.
    next: usize,
}

impl http_body::Body for ReplayBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let mut frames = self.recording.lock();
        if frames.turn != self.turn {
            return Poll::Ready(Some(Err(Status::cancelled("the request was sent to another instance"))));
        }
        let frame = ready!(frames.poll(self.next, cx));
        drop(frames);
        self.next += 1;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let frames = self.recording.lock();
        self.next >= frames.kept.len() && frames.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let frames = self.recording.lock();
        match frames.kept.is_empty() {
            true => frames.rest.size_hint(),
            false => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::poll_fn;
    use std::collections::VecDeque;

    struct Frames(VecDeque<Kept>);

    impl http_body::Body for Frames {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Ready(self.0.pop_front().map(|kept| Ok(kept.into())))
        }
    }

    /// Returns a request with the frames `1`, `2` and trailers.
    fn request(keeps: bool) -> Replayed {
        let data = |text: &'static str| Kept::Data(Bytes::from_static(text.as_bytes()));
        let frames = Frames([data("1"), data("2"), Kept::Trailers(HeaderMap::new())].into());
        Replayed::new(Request::new(Body::new(frames)), keeps)
    }

    /// Returns the next frame: its data, `end`, or the code of an error.
    async fn next(body: &mut Body) -> String {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => String::from_utf8(data.to_vec()).unwrap(),
                Err(_) => "trailers".to_owned(),
            },
            Some(Err(status)) => format!("{:?}", status.code()),
            None => "end".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_buffered_body_is_replayed_from_the_start() {
        let copy = request(true);
        let (first, recording) = copy.clone().into_request();
        let mut first = first.into_body();
        assert_eq!((next(&mut first).await, next(&mut first).await), ("1".to_owned(), "2".to_owned()));
        assert!(recording.is_whole() && copy.keeps());
        let (second, _) = copy.into_request();
        let mut second = second.into_body();
        for expected in ["1", "2", "trailers", "end"] {
            assert_eq!(next(&mut second).await, expected);
        }
        assert_eq!(next(&mut first).await, "Cancelled", "the body belongs to the second request");
    }

    #[tokio::test]
    async fn an_unbuffered_body_is_complete_until_it_is_first_polled() {
        let copy = request(false);
        let (_, recording) = copy.clone().into_request();
        assert!(recording.is_whole() && !copy.keeps());
        let (second, _) = copy.into_request();
        let mut second = second.into_body();
        assert_eq!(next(&mut second).await, "1");
        assert!(!recording.is_whole());
        for expected in ["2", "trailers", "end"] {
            assert_eq!(next(&mut second).await, expected);
        }
    }
}
