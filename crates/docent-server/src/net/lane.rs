use super::shape::Shape;
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Most bytes of one direction that wait. Nothing more is taken then.
const ROOM: usize = 1 << 20;

/// Pieces that a throttled link passes in a second.
const PIECES: u32 = 20;

/// As good as never: a longer time is beyond the range of the clock.
const A_CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// One direction of a link that has a [`Shape`]: the bytes on their way.
#[derive(Debug)]
pub(super) struct Lane {
    /// In their order, each piece with the time from which on it may pass.
    waiting: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    /// Time at which the throttle lets the next piece pass.
    next: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Lane {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, next: Instant::now(), timer: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Number of bytes that it takes.
    pub(super) fn room(&self) -> usize {
        ROOM - self.bytes
    }

    /// Takes bytes, not more than it has [room](Self::room) for.
    pub(super) fn push(&mut self, bytes: &[u8], shape: Shape) {
        self.bytes += bytes.len();
        let due = Instant::now() + shape.delay.min(A_CENTURY);
        self.waiting.push_back((due, Bytes::copy_from_slice(bytes)));
    }

    /// The next bytes, once some may pass; pending also while there are none.
    pub(super) fn poll_front(&mut self, cx: &mut Context<'_>, shape: Shape) -> Poll<&[u8]> {
        let Some((due, front)) = self.waiting.front() else { return Poll::Pending };
        let delayed = if shape.delay.is_zero() { None } else { Some(*due) };
        let at = delayed.max(shape.bytes_per_second.map(|_| self.next));
        if let Some(at) = at.filter(|at| *at > Instant::now()) {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
            if timer.deadline() != at {
                timer.as_mut().reset(at);
            }
            std::task::ready!(timer.as_mut().poll(cx));
        }
        let piece = shape.bytes_per_second.map_or(usize::MAX, |rate| (rate.get() / PIECES).max(1) as usize);
        Poll::Ready(&front[..front.len().min(piece)])
    }

    /// Takes note that so many bytes of the front have passed.
    pub(super) fn passed(&mut self, count: usize, shape: Shape) {
        let Some((_, front)) = self.waiting.front_mut() else { return };
        front.advance(count);
        self.bytes -= count;
        if front.is_empty() {
            self.waiting.pop_front();
        }
        if let Some(rate) = shape.bytes_per_second {
            let took = Duration::from_secs_f64(count as f64 / f64::from(rate.get()));
            self.next = self.next.max(Instant::now()) + took;
        }
    }
}
