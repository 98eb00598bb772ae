use super::ensemble::Ensemble;
use super::links::{KEPT, Link};
use crate::config::Config;
use crate::state::{Refusal, State};
use crate::time::Clock;
use bytes::{Bytes, BytesMut};
use docent_proto::Frames;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes waiting to be written to a link above which no more requests of it are looked at.
const FULL: usize = 256 << 10;

/// Bytes in front of a frame that say how long it is.
const PREFIX: usize = 4;

/// Requests of a link that are answered before others have their turn.
const TURN: usize = 100;

/// Time after which they have it in any case, in milliseconds.
const TURN_MS: i64 = 5;

/// State that all links share, and for each link the bytes that wait to be written. Both are under one lock,
/// so that events and replies are queued in the order of the changes they tell of.
pub(crate) struct Hub {
    ensemble: Mutex<Ensemble>,
    pub(crate) clock: Clock,
    frames: Frames,
}

/// Next action of a link's task after its input was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Read on.
    Hungry,
    /// Let others have their turn before the next requests.
    Busy,
    /// Write first: the client does not keep up.
    Full,
    /// Write what there is, then close.
    Ending,
    /// Close now.
    Cut,
}

impl Hub {
    pub(crate) fn new(config: &Config, clock: Clock, state: State) -> Self {
        let frames = Frames::new(config.limits.frame_bytes);
        let ensemble = Ensemble::new(config, state, clock.clone());
        Self { ensemble: Mutex::new(ensemble), clock, frames }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Ensemble> {
        // A panic while the lock was held must not take every other link down with it.
        self.ensemble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers complete requests in `input`, until there are none, or the client or others have to go first.
    /// The link's task has `unwritten` bytes to write still.
    pub(crate) fn receive(&self, id: u64, input: &mut BytesMut, unwritten: usize) -> Progress {
        let room = input.capacity();
        let mut ensemble = self.lock();
        if let Some(link) = ensemble.links.get_mut(id) {
            link.unwritten(unwritten);
        }
        let progress = self.answer_all(&mut ensemble, id, input);
        if let Some(link) = ensemble.links.get_mut(id) {
            link.coming(input.len());
        }
        ensemble.admit_bytes(id);
        drop(ensemble);
        shrink(input, room);
        progress
    }

    fn answer_all(&self, ensemble: &mut Ensemble, id: u64, input: &mut BytesMut) -> Progress {
        let began = self.clock.now_ms();
        for _ in 0..TURN {
            match self.answer_next(ensemble, id, input) {
                Ok(now) if now - began < TURN_MS => {}
                Ok(_) => break,
                Err(progress) => return progress,
            }
        }
        Progress::Busy
    }

    /// Answers the next request, and tells the time after it.
    ///
    /// # Errors
    /// The next action of the link's task when there is none to answer now.
    fn answer_next(&self, ensemble: &mut Ensemble, id: u64, input: &mut BytesMut) -> Result<i64, Progress> {
        let link = ensemble.links.get(id).ok_or(Progress::Cut)?;
        if link.ending {
            return Err(Progress::Ending);
        }
        if link.output.len() >= FULL || link.under_way() >= ensemble.limits.requests_per_connection {
            return Err(Progress::Full);
        }
        let (session, member, held) = (link.session, link.member, link.held);
        // Requests behind the held one may wait for the leader, too; behind a handshake none do.
        if held && (session.is_none() || ensemble.members.holding(member).is_none()) {
            input.clear();
            return Err(Progress::Hungry);
        }
        let now = self.clock.now_ms();
        if session.is_none() && ensemble.answer_word(id, input, now) {
            return Ok(now);
        }
        let frame = self.cut_frame(ensemble, id, input)?;
        ensemble.count_received(id, PREFIX + frame.len(), now);
        let timed = match session {
            None => ensemble.handshake(id, frame, now),
            Some(session) => ensemble.request(id, session, frame, now),
        };
        let done = self.clock.now_ms();
        if let Some(timed) = timed {
            ensemble.count_latency(id, timed, now, done);
        }
        Ok(done)
    }

    /// The next frame of `input`. The link is closed when that is none.
    fn cut_frame(&self, ensemble: &mut Ensemble, id: u64, input: &mut BytesMut) -> Result<Bytes, Progress> {
        match self.frames.next(input) {
            Ok(frame) => frame.ok_or(Progress::Hungry),
            Err(error) => {
                tracing::debug!(%error, "link closed");
                ensemble.refuse_frame(id, &error);
                Err(Progress::Cut)
            }
        }
    }

    /// Takes the bytes that wait to be written to a link.
    pub(crate) fn take_output(&self, id: u64) -> BytesMut {
        self.lock().links.get_mut(id).map(Link::take_output).unwrap_or_default()
    }

    /// True while the link is open.
    pub(crate) fn is_open(&self, id: u64) -> bool {
        self.lock().links.get(id).is_some()
    }

    /// Closes a link that has not asked for a session in time.
    pub(crate) fn give_up(&self, id: u64, waited: Duration) {
        let limit = usize::try_from(waited.as_millis()).unwrap_or(usize::MAX);
        self.lock().expel(id, Refusal { rule: "handshake", value: limit, limit });
    }

    /// True once the link has a session.
    pub(crate) fn is_attached(&self, id: u64) -> bool {
        self.lock().links.get(id).is_some_and(|link| link.session.is_some())
    }
}

/// Leaves a large buffer of `room` bytes for a small one, if the bytes that are left would fit.
fn shrink(input: &mut BytesMut, room: usize) {
    if room > KEPT && input.len() <= room / 4 {
        *input = BytesMut::from(&input[..]);
    }
}
