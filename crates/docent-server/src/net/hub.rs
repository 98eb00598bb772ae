use super::buffers::Incoming;
use super::ensemble::Ensemble;
use super::links::Link;
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

/// Units of work that are done for a link before others have their turn. A unit is about what it takes to
/// look at one node. Time is no measure here: runs of a simulation repeat.
const TURN: usize = 20_000;

/// Units that each request takes, besides one for each of its bytes.
const REQUEST: usize = 100;

/// State that all links share, and for each link the bytes that wait to be written. Both are under one lock,
/// so that events and replies are queued in the order of the changes they tell of.
pub(crate) struct Hub {
    ensemble: Mutex<Ensemble>,
    /// Held while one waits for the ensemble: a task that has just left it does not overtake those that wait.
    next: Mutex<()>,
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
        Self { ensemble: Mutex::new(ensemble), next: Mutex::new(()), clock, frames }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Ensemble> {
        let _next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        // A panic while the lock was held must not take every other link down with it.
        self.ensemble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers complete requests in `input`, until there are none, or the client or others have to go first.
    /// The link's task holds `unwritten` bytes to write still.
    pub(super) fn receive(&self, id: u64, input: &mut Incoming, unwritten: usize) -> Progress {
        let mut ensemble = self.lock();
        if let Some(link) = ensemble.links.get_mut(id) {
            link.unwritten(unwritten);
        }
        let progress = self.answer_all(&mut ensemble, id, &mut input.bytes);
        if let Some(link) = ensemble.links.get_mut(id) {
            link.coming(input.bytes.len());
            if progress != Progress::Hungry {
                link.work = 0;
            }
        }
        ensemble.admit_bytes(id);
        drop(ensemble);
        input.settle();
        progress
    }

    fn answer_all(&self, ensemble: &mut Ensemble, id: u64, input: &mut BytesMut) -> Progress {
        loop {
            if let Err(progress) = self.answer_next(ensemble, id, input) {
                return progress;
            }
        }
    }

    /// Answers the next request.
    ///
    /// # Errors
    /// The next action of the link's task when there is none to answer now.
    fn answer_next(&self, ensemble: &mut Ensemble, id: u64, input: &mut BytesMut) -> Result<(), Progress> {
        let link = ensemble.links.get(id).ok_or(Progress::Cut)?;
        if link.ending {
            return Err(Progress::Ending);
        }
        if link.output.len() >= FULL || link.under_way() >= ensemble.limits.requests_per_connection {
            return Err(Progress::Full);
        }
        if link.work >= TURN || ensemble.is_crowded() {
            return Err(Progress::Busy);
        }
        let (session, member, held) = (link.session, link.member, link.held);
        // Requests behind the held one may wait for the leader, too; behind a handshake none do.
        if held && (session.is_none() || ensemble.members.holding(member).is_none()) {
            input.clear();
            return Err(Progress::Hungry);
        }
        let now = self.clock.now_ms();
        if session.is_none() && ensemble.answer_word(id, input, now) {
            return Ok(());
        }
        let frame = self.cut_frame(ensemble, id, input)?;
        ensemble.count_received(id, PREFIX + frame.len(), now);
        ensemble.count_work(id, REQUEST + frame.len());
        let timed = match session {
            None => ensemble.handshake(id, frame, now),
            Some(session) => ensemble.request(id, session, frame, now),
        };
        if let Some(timed) = timed {
            ensemble.count_latency(id, timed, now, self.clock.now_ms());
        }
        Ok(())
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
