use crate::event::{Attempt, AttemptId, ClientId, Ending, Event, Grant, Handle, Role, Use, What};
use crate::timeline::Timeline;
use std::collections::BTreeMap;
use std::time::Duration;

/// Facts that the record tells of one attempt.
#[derive(Debug)]
pub(crate) struct Story<'a> {
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
    pub(crate) what: Deed,
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

impl Story<'_> {
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
        self.acts.iter().find(|act| act.what.says() == Some(false)).map(|act| act.at)
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

/// An attempt among those of a client at a path.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) id: AttemptId,
    pub(crate) began: Duration,
    /// The last of this and all earlier attempts that stopped to wait, with the time; `None` while one of
    /// them waits on.
    pub(crate) last: Option<(Duration, AttemptId)>,
}

/// The stories of a run, and the parts of the record that belong to no attempt that began.
#[derive(Debug, Default)]
pub(crate) struct Attempts<'a> {
    stories: BTreeMap<AttemptId, Story<'a>>,
    by_seat: BTreeMap<(ClientId, &'a str), Vec<Wait>>,
    /// The attempts that go together, and the group that an attempt is in.
    groups: Vec<&'a [AttemptId]>,
    group_of: BTreeMap<AttemptId, usize>,
    /// Contradictions, with the attempt and the place in the record.
    pub(crate) contradictions: Vec<(AttemptId, usize, &'static str)>,
}

impl<'a> Attempts<'a> {
    pub(crate) fn of(events: &'a [Event], lives: &BTreeMap<ClientId, Timeline>) -> Self {
        let mut attempts = Self::default();
        for (index, event) in events.iter().enumerate() {
            attempts.note(index, event, lives);
        }
        attempts.find_last();
        attempts
    }

    /// Finds the attempts that stopped to wait last, once all is known.
    fn find_last(&mut self) {
        for waits in self.by_seat.values_mut() {
            let mut last = Some(None);
            for wait in waits {
                let over = self.stories.get(&wait.id).and_then(Story::waited_until);
                last = last.zip(over).map(|(last, over)| Some((over, wait.id)).max(last));
                wait.last = last.flatten();
            }
        }
    }

    fn note(&mut self, index: usize, event: &'a Event, lives: &BTreeMap<ClientId, Timeline>) {
        let (at, what) = (event.at, &event.what);
        if let (What::Began(attempt), Some(client)) = (what, event.client) {
            let crashed = lives.get(&client).and_then(|life| life.crashed);
            self.begin(index, Story::new(attempt, client, at, crashed));
            return;
        }
        if let What::Together(attempts) = what {
            self.group_of.extend(attempts.iter().map(|id| (*id, self.groups.len())));
            self.groups.push(attempts);
            return;
        }
        let Some(id) = attempt_of(what) else { return };
        let Some(story) = self.stories.get_mut(&id) else {
            self.contradictions.push((id, index, "it never began"));
            return;
        };
        if let Some(wrong) = story.contradicts(what) {
            self.contradictions.push((id, index, wrong));
        }
        story.take_down(index, at, what);
    }

    fn begin(&mut self, index: usize, story: Story<'a>) {
        let (id, began, seat) = (story.id(), story.began, (story.client, story.attempt.path.as_str()));
        if self.stories.insert(id, story).is_some() {
            self.contradictions.push((id, index, "it began twice"));
        }
        self.by_seat.entry(seat).or_default().push(Wait { id, began, last: None });
    }

    pub(crate) fn get(&self, id: AttemptId) -> Option<&Story<'a>> {
        self.stories.get(&id)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Story<'a>> {
        self.stories.values()
    }

    /// The attempts of a client at a path, in the order in which they began.
    pub(crate) fn at_seat<'b>(
        &'b self,
        client: ClientId,
        path: &'b str,
    ) -> impl Iterator<Item = &'b Story<'a>> {
        self.seat(client, path).iter().filter_map(|wait| self.stories.get(&wait.id))
    }

    /// As [`at_seat`](Self::at_seat), without their stories.
    pub(crate) fn seat<'b>(&'b self, client: ClientId, path: &'b str) -> &'b [Wait] {
        self.by_seat.get(&(client, path)).map_or(&[], Vec::as_slice)
    }

    /// The attempts of a client at a path that began by `until`, without the first ones, none of which waited
    /// at `since` any more.
    pub(crate) fn waiting<'b>(
        &'b self,
        client: ClientId,
        path: &'b str,
        since: Duration,
        until: Duration,
    ) -> impl Iterator<Item = &'b Story<'a>> {
        let waits = self.seat(client, path);
        let begun = &waits[..waits.partition_point(|wait| wait.began <= until)];
        let over = begun.partition_point(|wait| wait.last.is_some_and(|(over, _)| over < since));
        begun[over..].iter().filter_map(|wait| self.stories.get(&wait.id))
    }

    /// The attempts that go together.
    pub(crate) fn groups(&self) -> &[&'a [AttemptId]] {
        &self.groups
    }

    /// The attempts that go together with one, itself among them; none when it is alone.
    pub(crate) fn together(&self, id: AttemptId) -> impl Iterator<Item = &Story<'a>> {
        let group = self.group_of.get(&id).map_or(&[][..], |group| self.groups[*group]);
        group.iter().filter_map(|id| self.stories.get(id))
    }

    /// True when others go together with it.
    pub(crate) fn is_grouped(&self, id: AttemptId) -> bool {
        self.group_of.contains_key(&id)
    }

    /// The clients and paths where anything was attempted.
    pub(crate) fn seats(&self) -> impl Iterator<Item = (ClientId, &'a str)> {
        self.by_seat.keys().copied()
    }
}

impl<'a> Story<'a> {
    fn new(attempt: &'a Attempt, client: ClientId, began: Duration, crashed: Option<Duration>) -> Self {
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

    /// Contradiction of `what` to the story so far, which no behaviour of the library can explain.
    fn contradicts(&self, what: &What) -> Option<&'static str> {
        let over = self.releasing.is_some() || self.dropped.is_some();
        match what {
            What::Granted(..) if self.granted.is_some() => Some("it was granted twice"),
            What::Granted(..) if self.ended.is_some() => Some("it was granted after it had ended"),
            What::Granted(..) => None,
            What::Ended(..) if self.granted.is_some() => Some("it ended after it was granted"),
            What::Ended(..) if self.ended.is_some() => Some("it ended twice"),
            What::Ended(..) => None,
            _ if self.granted.is_none() => Some("its guard was used before it was granted"),
            What::Released { .. } if self.releasing.is_none() => Some("it was released and never called so"),
            What::Released { .. } if self.released.is_some() => Some("it was released twice"),
            What::Released { .. } | What::Lost(_) => None,
            _ if over => Some("its guard was used after it was given up"),
            _ => None,
        }
    }

    fn take_down(&mut self, index: usize, at: Duration, what: &'a What) {
        let deed = match what {
            What::Granted(_, grant) => {
                self.granted.get_or_insert((at, grant));
                return;
            }
            What::Ended(_, ending) => {
                self.ended.get_or_insert((at, ending));
                return;
            }
            What::Released { ok, .. } => {
                self.released.get_or_insert((at, *ok));
                return;
            }
            What::Lost(_) => {
                self.lost.get_or_insert(at);
                Deed::Lost
            }
            What::Releasing(_) => {
                self.releasing.get_or_insert(at);
                Deed::Releasing
            }
            What::Dropped(_) => {
                self.dropped.get_or_insert(at);
                Deed::Dropped
            }
            What::Looked { held, cancelled, .. } => Deed::Looked { held: *held, cancelled: *cancelled },
            What::Verified { held, .. } => Deed::Verified(*held),
            What::Committed { applied, .. } => Deed::Committed(*applied),
            What::Reentered(_, handle) => Deed::Reentered(*handle),
            What::InnerReleased(_) => Deed::InnerReleased,
            What::Used(_, used) => Deed::Used(*used),
            _ => return,
        };
        self.acts.push(Act { at, index, what: deed });
    }
}

/// The attempt that an event is about.
pub(crate) fn attempt_of(what: &What) -> Option<AttemptId> {
    match what {
        What::Began(attempt) => Some(attempt.id),
        What::Granted(id, _)
        | What::Ended(id, _)
        | What::Reentered(id, _)
        | What::Used(id, _)
        | What::Lost(id)
        | What::InnerReleased(id)
        | What::Releasing(id)
        | What::Dropped(id) => Some(*id),
        What::Looked { attempt, .. }
        | What::Verified { attempt, .. }
        | What::Committed { attempt, .. }
        | What::Released { attempt, .. } => Some(*attempt),
        _ => None,
    }
}
