use super::ensemble::Ensemble;
use crate::config::Config;
use crate::state::State;
use crate::time::Clock;
use bytes::BytesMut;
use docent_proto::Frames;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes waiting to be written to a link above which no more requests of it are looked at.
const FULL: usize = 256 << 10;

/// Bytes in front of a frame that say how long it is.
const PREFIX: usize = 4;

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
        let ensemble = Ensemble::new(config, state, clock.now_ms());
        Self { ensemble: Mutex::new(ensemble), clock, frames }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Ensemble> {
        // A panic while the lock was held must not take every other link down with it.
        self.ensemble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers all complete requests in `input`, until there are none or the client has to read first.
    pub(crate) fn receive(&self, id: u64, input: &mut BytesMut) -> Progress {
        let mut ensemble = self.lock();
        loop {
            let Some(link) = ensemble.links.get(id) else { return Progress::Cut };
            if link.ending {
                return Progress::Ending;
            }
            if link.output.len() >= FULL {
                return Progress::Full;
            }
            let (session, member, held) = (link.session, link.member, link.held);
            // Requests behind the held one may wait for the leader, too; behind a handshake none do.
            if held && (session.is_none() || ensemble.members.holding(member).is_none()) {
                input.clear();
                return Progress::Hungry;
            }
            let now = self.clock.now_ms();
            if session.is_none() && ensemble.answer_word(id, input, now) {
                continue;
            }
            let frame = match self.frames.next(input) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Progress::Hungry,
                Err(error) => {
                    tracing::debug!(%error, "link closed");
                    ensemble.count(member, |totals| totals.frames_refused += 1);
                    ensemble.cut(id);
                    return Progress::Cut;
                }
            };
            ensemble.count_received(id, PREFIX + frame.len(), now);
            let timed = match session {
                None => ensemble.handshake(id, frame, now),
                Some(session) => ensemble.request(id, session, frame, now),
            };
            if let Some(timed) = timed {
                ensemble.count_latency(id, timed, now, self.clock.now_ms());
            }
        }
    }

    /// Takes the bytes that wait to be written to a link.
    pub(crate) fn take_output(&self, id: u64) -> BytesMut {
        self.lock().links.get_mut(id).map(|link| link.output.split()).unwrap_or_default()
    }

    /// True once the link has a session.
    pub(crate) fn is_attached(&self, id: u64) -> bool {
        self.lock().links.get(id).is_some_and(|link| link.session.is_some())
    }
}
