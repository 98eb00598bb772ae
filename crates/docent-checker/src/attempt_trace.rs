use crate::event::{Attempt, AttemptId, ClientId, Ending, EventKind, Grant, Handle, Role, Use};
use std::time::Duration;

/// Facts that the record tells of one attempt.
#[derive(Debug)]
pub(crate) struct AttemptTrace<'a> {
    pub(crate) attempt: &'a Attempt,
    pub(crate) client: ClientId,
    pub(crate) began: Duration,
    pub(crate) granted: Option<(Duration, &'a Grant)>,
    pub(crate) ended: Option<(Duration, &'a Ending)>,
    /// `lost()` resolved for the first time.
    pub(crate) lost: Option<Duration>,
    pub(crate) releasing: Option<Duration>,
    pub(crate) released: Option<(Duration, bool)>,
    pub(crate) dropped: Option<Duration>,
    pub(crate) crashed: Option<Duration>,
    /// Words of the guard and deeds done with it, in order.
    pub(crate) acts: Vec<Act>,
}

/// Word of a guard, or deed done with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Act {
    pub(crate) at: Duration,
    /// Its place in the record.
    pub(crate) index: usize,
    pub(crate) deed: Deed,
}

/// Kind of an [`Act`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Looked { held: bool, cancelled: bool },
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
    /// Its word on whether the guard is held; `None` when it says nothing about that.
    pub(crate) fn says(self) -> Option<bool> {
        match self {
            Self::Looked { held, .. } => Some(held),
            Self::Verified(answer) => answer,
            Self::Reentered(Handle::Given) => Some(true),
            Self::Reentered(Handle::Lost) | Self::Lost => Some(false),
            // A transaction may be answered long after it was applied, or fail for another reason.
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

    /// Time at which its client gave it up, or died.
    pub(crate) fn given_up(&self) -> Option<Duration> {
        [self.releasing, self.dropped, self.crashed].into_iter().flatten().min()
    }

    /// Time at which it was known to be lost.
    pub(crate) fn known_lost(&self) -> Option<Duration> {
        self.acts.iter().find(|act| act.deed.says() == Some(false)).map(|act| act.at)
    }

    /// Time at which it stopped to claim its hold.
    pub(crate) fn until(&self) -> Option<Duration> {
        [self.given_up(), self.known_lost()].into_iter().flatten().min()
    }

    /// Time at which it stopped to wait.
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

    /// Contradiction of `kind` to the trace so far, which no behaviour of the library can explain.
    pub(crate) fn contradicts(&self, kind: &EventKind) -> Option<&'static str> {
        let over = self.releasing.is_some() || self.dropped.is_some();
        match kind {
            EventKind::Granted(..) if self.granted.is_some() => Some("it was granted twice"),
            EventKind::Granted(..) if self.ended.is_some() => Some("it was granted after it had ended"),
            EventKind::Granted(..) => None,
            EventKind::Ended(..) if self.granted.is_some() => Some("it ended after it was granted"),
            EventKind::Ended(..) if self.ended.is_some() => Some("it ended twice"),
            EventKind::Ended(..) => None,
            _ if self.granted.is_none() => Some("its guard was used before it was granted"),
            EventKind::Released { .. } if self.releasing.is_none() => {
                Some("it was released and never called so")
            }
            EventKind::Released { .. } if self.released.is_some() => Some("it was released twice"),
            EventKind::Released { .. } | EventKind::Lost(_) => None,
            _ if over => Some("its guard was used after it was given up"),
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
            EventKind::Looked { held, cancelled, .. } => Deed::Looked { held: *held, cancelled: *cancelled },
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
