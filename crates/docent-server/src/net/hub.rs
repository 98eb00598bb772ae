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

/// Units of work done for a link before other links get their turn. A unit is about the work of visiting one
/// node. Work is not measured in time, because simulation runs must be reproducible.
const TURN: usize = 20_000;

/// Units of work for each request, besides one unit per byte.
const REQUEST: usize = 100;

/// The state that all links share, and the queued output of each link. Both are under one lock, so that
/// events and replies are queued in the order of their changes.
pub(crate) struct Hub {
    ensemble: Mutex<Ensemble>,
    /// Held while waiting for the ensemble, so that a task that has just unlocked it cannot overtake waiting
    /// tasks.
    next: Mutex<()>,
    pub(crate) clock: Clock,
    frames: Frames,
}

/// Next action of a link's task after its input was processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Read more.
    Hungry,
    /// Let other links have their turn before the next requests.
    Busy,
    /// Write, or wait: the client, or all clients together, do not read fast enough.
    Full,
    /// Write the remaining output, then close.
    Ending,
    /// Close immediately.
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
        // A panic while the lock was held must not take down every other link.
        Locked::new(self.ensemble.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers complete requests in `input` until none is left, or the client or other links must act first.
    /// `output` is what the link's task is writing.
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
    /// The next action of the link's task, if no request can be answered now.
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
        // Requests after a held request may also wait for the leader. Requests after a held handshake are
        // discarded.
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

    /// Removes and returns the next frame of `input`. An invalid frame closes the link.
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

    /// Removes and returns the bytes queued for a link.
    pub(crate) fn take_output(&self, id: u64) -> BytesMut {
        let now = self.clock.now_ms();
        self.lock().links.get_mut(id).map(|link| link.take_output(now)).unwrap_or_default()
    }

    /// Returns whether the link is open.
    pub(crate) fn is_open(&self, id: u64) -> bool {
        self.lock().links.get(id).is_some()
    }

    /// Closes a link that has not requested a session in time.
    pub(crate) fn give_up(&self, id: u64, waited: Duration) {
        let limit = usize::try_from(waited.as_millis()).unwrap_or(usize::MAX);
        self.lock().expel(id, Refusal { rule: "handshake", value: limit, limit });
    }

    /// Returns whether the link has a session.
    pub(crate) fn is_attached(&self, id: u64) -> bool {
        self.lock().links.get(id).is_some_and(|link| link.session.is_some())
    }
}

/// Returns the length of the frame at the start of `bytes`, or 0 if its length prefix is incomplete.
fn announced(mut bytes: &[u8]) -> usize {
    let length = bytes.try_get_i32().ok().and_then(|length| usize::try_from(length).ok());
    length.map_or(0, |length| FRAME_LENGTH + length)
}
