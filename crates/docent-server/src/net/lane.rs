use super::shape::Shape;
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Maximum bytes that wait in one direction. Beyond that, nothing is accepted.
const ROOM: usize = 1 << 20;

/// Number of pieces per second that a throttled link passes.
const PIECES: u32 = 20;

/// Longest usable delay. A longer time exceeds the range of the clock.
const A_CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// One direction of a link that has a [`Shape`]: the bytes in transit.
#[derive(Debug)]
pub(super) struct Lane {
    /// The pieces in order, each with the earliest time at which it may pass.
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

    /// Returns the number of bytes that can be accepted.
    pub(super) fn room(&self) -> usize {
        ROOM - self.bytes
    }

    /// Accepts bytes, at most as many as there is [room](Self::room) for.
    pub(super) fn push(&mut self, bytes: &[u8], shape: Shape) {
        self.bytes += bytes.len();
        let due = Instant::now() + shape.delay.min(A_CENTURY);
        self.waiting.push_back((due, Bytes::copy_from_slice(bytes)));
    }

    /// Returns the next bytes once some may pass. Pending also if there are none.
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

    /// Removes the first `count` bytes, which have passed.
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
