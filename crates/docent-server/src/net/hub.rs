use super::buffers::{Incoming, Outgoing};
use super::ensemble::Ensemble;
use super::links::SMALL;
use super::locked::Locked;
use crate::config::Config;
use crate::limits::FRAME_LENGTH;
use crate::state::{Refusal, State};
use crate::time::Clock;
use bytes::{Buf, Bytes, BytesMut};
use docent_proto::Frames;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

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
    /// Write first, or wait: the client does not keep up, or all clients together do not.
    Full,
    /// Write what there is, then close.
    Ending,
    /// Close now.
    Cut,
}

impl Hub {
    pub(crate) fn new(config: &Config, clock: Clock, state: State) -> Self {
        let frames = Frames::new(config.limits.longest_request());
        let ensemble = Ensemble::new(config, state, clock.clone());
        Self { ensemble: Mutex::new(ensemble), next: Mutex::new(()), clock, frames }
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        let _next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        // A panic while the lock was held must not take every other link down with it.
        Locked::new(self.ensemble.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers complete requests in `input`, until there are none, or the client or others have to go first.
    /// `output` is what the link's task writes.
    pub(super) fn receive(&self, id: u64, input: &mut Incoming, output: &Outgoing) -> Progress {
        let mut ensemble = self.lock();
        ensemble.take_note(id, input.held(), output);
        let progress = self.answer_all(&mut ensemble, id, input);
        if let Some(link) = ensemble.links.get_mut(id) {
            link.coming(input.held());
            link.is_full = progress == Progress::Full;
            if progress != Progress::Hungry {
                link.work = 0;
            }
        }
        ensemble.admit_bytes(id);
        drop(ensemble);
        input.settle();
        progress
    }

    fn answer_all(&self, ensemble: &mut Ensemble, id: u64, input: &mut Incoming) -> Progress {
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
    fn answer_next(&self, ensemble: &mut Ensemble, id: u64, input: &mut Incoming) -> Result<(), Progress> {
        let link = ensemble.links.get(id).ok_or(Progress::Cut)?;
        if link.ending {
            return Err(Progress::Ending);
        }
        if link.under_way() >= ensemble.limits.requests_per_connection {
            return Err(Progress::Full);
        }
        if link.work >= TURN || ensemble.is_crowded() {
            return Err(Progress::Busy);
        }
        let (session, member, held) = (link.session, link.member, link.held);
        // Requests behind the held one may wait for the leader, too; behind a handshake none do.
        if held && (session.is_none() || ensemble.members.holding(member).is_none()) {
            input.bytes.clear();
            input.request = None;
            return Err(Progress::Hungry);
        }
        let now = self.clock.now_ms();
        if session.is_none() && ensemble.answer_word(id, &mut input.bytes, now)? {
            return Ok(());
        }
        let frame = self.cut_frame(ensemble, id, input)?;
        if let Some(session) = session
            && !ensemble.has_room(id, session, &frame, now)
        {
            input.request = Some(frame);
            return Err(Progress::Full);
        }
        ensemble.count_received(id, FRAME_LENGTH + frame.len(), now);
        ensemble.count_work(id, REQUEST + frame.len());
        let timed = match session {
            None => ensemble.handshake(id, frame, now),
            Some(session) => ensemble.request(id, session, frame, now),
        };
        ensemble.links.end_request(id);
        if let Some(timed) = timed {
            ensemble.count_latency(id, timed, now, self.clock.now_ms());
        }
        Ok(())
    }

    /// The next frame of `input`. The link is closed when that is none.
    fn cut_frame(&self, ensemble: &mut Ensemble, id: u64, input: &mut Incoming) -> Result<Bytes, Progress> {
        if let Some(request) = input.request.take() {
            return Ok(request);
        }
        input.missing = None;
        match self.frames.next(&mut input.bytes) {
            Ok(Some(frame)) => Ok(frame),
            Ok(None) => {
                let length = announced(&input.bytes);
                if !ensemble.has_room_for_request(id, length) {
                    return Err(Progress::Full);
                }
                input.missing = (length > SMALL).then(|| length - input.bytes.len());
                Err(Progress::Hungry)
            }
            Err(error) => {
                ensemble.refuse_frame(id, error);
                Err(Progress::Cut)
            }
        }
    }

    /// Takes the bytes that wait to be written to a link.
    pub(crate) fn take_output(&self, id: u64) -> BytesMut {
        let now = self.clock.now_ms();
        self.lock().links.get_mut(id).map(|link| link.take_output(now)).unwrap_or_default()
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

/// Bytes of the frame at the front of what came in; 0 while its length has not come in.
fn announced(mut bytes: &[u8]) -> usize {
    let length = bytes.try_get_i32().ok().and_then(|length| usize::try_from(length).ok());
    length.map_or(0, |length| FRAME_LENGTH + length)
}
