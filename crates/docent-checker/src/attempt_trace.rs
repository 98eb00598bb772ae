use crate::event::{Attempt, AttemptId, ClientId, Ending, EventKind, Grant, Handle, Role, Use};
use std::time::Duration;

/// Recorded facts about one attempt.
#[derive(Debug)]
pub(crate) struct AttemptTrace<'a> {
    pub(crate) attempt: &'a Attempt,
    pub(crate) client: ClientId,
    pub(crate) began: Duration,
    pub(crate) granted: Option<(Duration, &'a Grant)>,
    pub(crate) ended: Option<(Duration, &'a Ending)>,
    /// Time at which `lost()` resolved first.
    pub(crate) lost: Option<Duration>,
    pub(crate) releasing: Option<Duration>,
    pub(crate) released: Option<(Duration, bool)>,
    pub(crate) dropped: Option<Duration>,
    pub(crate) crashed: Option<Duration>,
    /// What the guard reported and what was done with it, in order.
    pub(crate) acts: Vec<Act>,
}

/// A report of a guard, or an operation with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Act {
    pub(crate) at: Duration,
    /// Index in the record.
    pub(crate) index: usize,
    pub(crate) deed: Deed,
}

/// Kind of an [`Act`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    HeldChecked { held: bool, cancelled: bool },
    Verified(Option<bool>),
    Committed(Option<bool>),
    Reentered(Handle),
    InnerReleased,
    Releasing,
    Dropped,
    Lost,
    Used(Use),
}

impl Deed {
    /// What this reports about the guard: held or not; `None` if it reports nothing about that.
    pub(crate) fn reports_held(self) -> Option<bool> {
        match self {
            Self::HeldChecked { held, .. } => Some(held),
            Self::Verified(answer) => answer,
            Self::Reentered(Handle::Given) => Some(true),
            Self::Reentered(Handle::Lost) | Self::Lost => Some(false),
            // A transaction may be answered long after it was applied, and may fail for another reason.
            Self::Committed(_) | Self::InnerReleased | Self::Releasing | Self::Dropped | Self::Used(_) => {
                None
            }
        }
    }
}

impl AttemptTrace<'_> {
    pub(crate) fn id(&self) -> AttemptId {
        self.attempt.id
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        self.attempt.role == Role::Exclusive
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.attempt.role == Role::Shared
    }

    /// Time at which its client gave the attempt up, or crashed.
    pub(crate) fn given_up(&self) -> Option<Duration> {
        [self.releasing, self.dropped, self.crashed].into_iter().flatten().min()
    }

    /// Time at which the client learned that the attempt's hold was lost.
    pub(crate) fn learned_lost(&self) -> Option<Duration> {
        self.acts.iter().find(|act| act.deed.reports_held() == Some(false)).map(|act| act.at)
    }

    /// Time at which the client stopped claiming the hold.
    pub(crate) fn until(&self) -> Option<Duration> {
        [self.given_up(), self.learned_lost()].into_iter().flatten().min()
    }

    /// Time at which the attempt stopped waiting.
    pub(crate) fn waited_until(&self) -> Option<Duration> {
        let granted = self.granted.map(|(at, _)| at);
        let ended = self.ended.map(|(at, _)| at);
        [granted, ended, self.crashed].into_iter().flatten().min()
    }
}

impl<'a> AttemptTrace<'a> {
    pub(crate) fn new(
        attempt: &'a Attempt,
        client: ClientId,
        began: Duration,
        crashed: Option<Duration>,
    ) -> Self {
        Self {
            attempt,
            client,
            began,
            granted: None,
            ended: None,
            lost: None,
            releasing: None,
            released: None,
            dropped: None,
            crashed,
            acts: Vec::new(),
        }
    }

    /// Returns how `kind` contradicts the trace so far, if no behaviour of the library can explain it.
    pub(crate) fn contradicts(&self, kind: &EventKind) -> Option<&'static str> {
        let given_up = self.releasing.is_some() || self.dropped.is_some();
        match kind {
            EventKind::Granted(..) if self.granted.is_some() => Some("the attempt was granted twice"),
            EventKind::Granted(..) if self.ended.is_some() => Some("the attempt was granted after its end"),
            EventKind::Granted(..) => None,
            EventKind::Ended(..) if self.granted.is_some() => Some("the attempt ended after it was granted"),
            EventKind::Ended(..) if self.ended.is_some() => Some("the attempt ended twice"),
            EventKind::Ended(..) => None,
            _ if self.granted.is_none() => Some("the guard was used before the grant"),
            EventKind::Released { .. } if self.releasing.is_none() => {
                Some("the guard was released without a call")
            }
            EventKind::Released { .. } if self.released.is_some() => Some("the guard was released twice"),
            EventKind::Released { .. } | EventKind::Lost(_) => None,
            _ if given_up => Some("the guard was used after it was given up"),
            _ => None,
        }
    }

    pub(crate) fn take_down(&mut self, index: usize, at: Duration, kind: &'a EventKind) {
        let deed = match kind {
            EventKind::Granted(_, grant) => {
                self.granted.get_or_insert((at, grant));
                return;
            }
            EventKind::Ended(_, ending) => {
                self.ended.get_or_insert((at, ending));
                return;
            }
            EventKind::Released { ok, .. } => {
                self.released.get_or_insert((at, *ok));
                return;
            }
            EventKind::Lost(_) => {
                self.lost.get_or_insert(at);
                Deed::Lost
            }
            EventKind::Releasing(_) => {
                self.releasing.get_or_insert(at);
                Deed::Releasing
            }
            EventKind::Dropped(_) => {
                self.dropped.get_or_insert(at);
                Deed::Dropped
            }
            EventKind::HeldChecked { held, cancelled, .. } => {
                Deed::HeldChecked { held: *held, cancelled: *cancelled }
            }
            EventKind::Verified { held, .. } => Deed::Verified(*held),
            EventKind::Committed { applied, .. } => Deed::Committed(*applied),
            EventKind::Reentered(_, handle) => Deed::Reentered(*handle),
            EventKind::InnerReleased(_) => Deed::InnerReleased,
            EventKind::Used(_, used) => Deed::Used(*used),
            _ => return,
        };
        self.acts.push(Act { at, index, deed });
    }
}
