use super::Line;
use super::draw::list_request;
use super::name::is_in_danger_zone;
use crate::client::Client;
use crate::error::Error;
use crate::guard::{Fence, REVOKE, Role};
use crate::node::{ClientIdentity, Stat};
use crate::operation::Idempotency;
use crate::time::since_1970_ms;
use bytes::Bytes;
use docent_proto::{Code, Request, Response};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::fmt;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Reads of participants under way at the same time.
const IN_FLIGHT: usize = 64;

/// Most characters of an identity in a text.
const LONGEST: usize = 200;

/// Contender in a line, as a read of its node shows it.
///
/// It is serialized with the same names, but for `since_ms` and `held_since_ms`, in milliseconds since 1970;
/// `session_id` is a text as `"0x10000a3f"`, and `identity` is its [text](Self::identity_text).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Participant {
    /// Name of the node.
    pub name: String,
    /// The number in the line.
    pub sequence: i32,
    /// Its role beside others.
    pub role: Role,
    /// True when no contender ahead keeps it from holding: a holder, unless it was lost.
    /// False for all of a line whose first place changed during each of three looks.
    pub holds: bool,
    /// Data of the node: by default host, process and label, as [`ClientIdentity`] has them, and Curator's an
    /// address. [`identity_text`](Self::identity_text) is for people.
    pub identity: Bytes,
    /// Time at which the place was taken, by the server's clock.
    pub since: SystemTime,
    /// The session that owns the place.
    pub session_id: i64,
    /// The fence it has or would have.
    pub fence: Fence,
    /// True when the identity is data of the user's, which is not to be shown.
    pub(super) has_payload: bool,
    /// Time of the last change of the node, if there was one.
    pub(super) changed: Option<SystemTime>,
}

impl Participant {
    /// Its identity in one line of at most 200 characters, without control characters; `None` when its node
    /// has no text, was overwritten by a request to give up the place, or is in a line whose nodes hold
    /// [data of the user's](Line::with_payload).
    pub fn identity_text(&self) -> Option<String> {
        let text = std::str::from_utf8(&self.identity)
            .ok()
            .filter(|_| !self.has_payload && self.identity != REVOKE)?;
        let line: String = text.chars().filter(|char| !char.is_control()).take(LONGEST).collect();
        (!line.trim().is_empty()).then_some(line)
    }

    /// Its [identity](Self::identity_text) where it has a text, else its session, as `session 0x10000a3f`.
    pub fn owner_text(&self) -> String {
        self.identity_text().unwrap_or_else(|| format!("session {:#x}", self.session_id))
    }

    /// Host, process and label of its client; `None` where its identity is of another form.
    pub fn client(&self) -> Option<ClientIdentity> {
        let text = std::str::from_utf8(&self.identity).ok().filter(|_| !self.has_payload)?;
        ClientIdentity::parse(text)
    }

    /// True once somebody asked it to give up its place.
    pub fn is_revoked(&self) -> bool {
        self.identity == REVOKE
    }

    /// Time since which it holds, by the server's clock, as it has recorded it with its first heartbeat: up
    /// to a sixth of its session timeout after it began. `None` while it waits, before that heartbeat, once
    /// it [is revoked](Self::is_revoked) or has changed its data again, as a leader does that proclaims, and
    /// for holders that record nothing, as those of Curator.
    pub fn held_since(&self) -> Option<SystemTime> {
        self.changed.filter(|_| self.holds && !self.is_revoked())
    }

    /// Time for which it has held. See [`held_since`](Self::held_since).
    pub fn held_for(&self) -> Option<Duration> {
        Some(SystemTime::now().duration_since(self.held_since()?).unwrap_or_default())
    }

    /// Time since it took its place: the server's clock says when that was, the local one what time it is
    /// now. Zero if the server's is ahead.
    pub fn age(&self) -> Duration {
        SystemTime::now().duration_since(self.since).unwrap_or_default()
    }
}

// Data that is no id is not printed.
impl fmt::Debug for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Participant")
            .field("name", &self.name)
            .field("role", &self.role)
            .field("holds", &self.holds)
            .field("identity", &Shown(self))
            .field("since", &self.since)
            .field("held_since", &self.held_since())
            .field("session_id", &format_args!("{:#x}", self.session_id))
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

impl Serialize for Participant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Participant", 9)?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("sequence", &self.sequence)?;
        fields.serialize_field("role", &self.role)?;
        fields.serialize_field("holds", &self.holds)?;
        fields.serialize_field("identity", &self.identity_text())?;
        fields.serialize_field("since_ms", &since_1970_ms(self.since))?;
        fields.serialize_field("held_since_ms", &self.held_since().map(since_1970_ms))?;
        fields.serialize_field("session_id", &format_args!("{:#x}", self.session_id))?;
        fields.serialize_field("fence", &self.fence)?;
        fields.end()
    }
}

/// Identity of a participant, as far as it is shown.
struct Shown<'a>(&'a Participant);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.identity_text() {
            Some(id) => id.fmt(f),
            None => write!(f, "{} bytes", self.0.identity.len()),
        }
    }
}

impl Line {
    /// The first in the line: the holder, unless it was lost. `None` when nobody is in it.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn first(&self) -> Result<Option<Participant>, Error> {
        front(self).await
    }

    /// Everybody in the line, first the holder.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`. A line that does not exist is empty.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn participants(&self) -> Result<Vec<Participant>, Error> {
        list_all(self).await
    }

    /// Asks a participant to give up its place: its guard's `revoked` resolves. It may ignore that. The
    /// format is Curator's.
    ///
    /// # Errors
    /// `NoNode` when the participant has left, `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: asking again does no harm.
    pub async fn revoke(&self, participant: &Participant) -> Result<(), Error> {
        let request = || Request::SetData {
            path: format!("{}/{}", self.full_path(), participant.name),
            data: Some(Bytes::from_static(REVOKE)),
            version: -1,
        };
        let (result, _) =
            self.client().call("revoke", self.path(), &request, Idempotency::Idempotent).await?;
        result.map(drop).map_err(|code| Error::from_code(code, "revoke").at(self.path()))
    }

    /// True when nobody is in the line, at the server this client talks to.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn is_empty(&self) -> Result<bool, Error> {
        Ok(names(self).await?.iter().all(|name| self.contender(name).is_none()))
    }

    /// Number of contenders in the line, at the server this client talks to.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn count(&self) -> Result<usize, Error> {
        Ok(names(self).await?.iter().filter(|name| self.contender(name).is_some()).count())
    }
}

/// Most looks at a line whose first place changes while its places are read.
const MOST_LOOKS: u32 = 3;

/// A client whose operations end by `deadline`: it covers all the reads of one look at a line.
fn by(deadline: Instant, line: &Line) -> Client {
    line.client().with_operation_timeout(deadline.saturating_duration_since(Instant::now()))
}

/// Names of all children; none when there is no line.
pub(super) async fn names(line: &Line) -> Result<Vec<String>, Error> {
    names_by(line, line.client().deadline()).await
}

pub(super) async fn names_by(line: &Line, deadline: Instant) -> Result<Vec<String>, Error> {
    let client = by(deadline, line);
    let (result, _) =
        client.call("participants", line.path(), &|| list_request(line), Idempotency::Idempotent).await?;
    match result {
        Ok(Response::Children { names, .. }) => Ok(names),
        Ok(_) | Err(Code::NO_NODE) => Ok(Vec::new()),
        Err(code) => Err(Error::from_code(code, "participants").at(line.path())),
    }
}

async fn list_all(line: &Line) -> Result<Vec<Participant>, Error> {
    list_by(line, line.client().deadline()).await
}

/// All participants. None is marked as a holder if the line changed during each of some looks.
async fn list_by(line: &Line, deadline: Instant) -> Result<Vec<Participant>, Error> {
    for look in 1.. {
        let names = names_by(line, deadline).await?;
        let first = names.iter().filter_map(|name| line.contender(name)).min();
        let mut participants: Vec<Participant> = stream::iter(names)
            .map(|name| read(line, name, deadline))
            .buffer_unordered(IN_FLIGHT)
            .try_filter_map(|participant| std::future::ready(Ok(participant)))
            .try_collect()
            .await?;
        // Near the end of the servers' counter numbers tell no order.
        let by_creation = participants.iter().any(|participant| is_in_danger_zone(participant.sequence));
        participants.sort_by_key(|participant| {
            let number = (!by_creation).then_some((participant.sequence, participant.role));
            (number, participant.fence)
        });
        let present = participants.first().map(|first| (first.sequence, first.role));
        // If the first has left since, the next one may have left with it, after it was read.
        let is_certain = by_creation || present == first;
        if is_certain {
            mark_holders(&mut participants);
        }
        if is_certain || look == MOST_LOOKS {
            return Ok(participants);
        }
    }
    unreachable!("the number of looks is limited")
}

/// Marks those of all `participants` of a line, in their order, that hold it.
fn mark_holders(participants: &mut [Participant]) {
    let sharing = participants.iter().take_while(|participant| participant.role == Role::Shared).count();
    // Without readers in front the first contender holds, and a reader in that place, which it has itself.
    let first = participants.first().map(|first| first.sequence);
    let alone = participants.iter().take_while(|participant| Some(participant.sequence) == first).count();
    let holding = if sharing > 0 { sharing } else { alone };
    participants.iter_mut().take(holding).for_each(|participant| participant.holds = true);
}

async fn front(line: &Line) -> Result<Option<Participant>, Error> {
    let deadline = line.client().deadline();
    loop {
        let names = names_by(line, deadline).await?;
        let contenders = names.into_iter().filter_map(|name| Some((line.contender(&name)?, name)));
        let contenders: Vec<_> = contenders.collect();
        if contenders.iter().any(|((sequence, _), _)| is_in_danger_zone(*sequence)) {
            return Ok(list_by(line, deadline).await?.into_iter().next());
        }
        let Some((_, name)) = contenders.into_iter().min() else { return Ok(None) };
        // It may have left since.
        if let Some(first) = read(line, name, deadline).await? {
            return Ok(Some(Participant { holds: true, ..first }));
        }
    }
}

/// `None` for a name that is no contender's, and for one that has left since.
pub(super) async fn read(line: &Line, name: String, deadline: Instant) -> Result<Option<Participant>, Error> {
    if line.contender(&name).is_none() {
        return Ok(None);
    }
    let found = read_node(line, &name, deadline).await?;
    Ok(found.and_then(|found| of_node(line, name, found)))
}

/// Data and stat of a node as it was found.
pub(super) type Found = (Bytes, docent_proto::Stat);

/// Data and stat of the node with this name; `None` for one that has left.
pub(super) async fn read_node(line: &Line, name: &str, deadline: Instant) -> Result<Option<Found>, Error> {
    let request = || Request::GetData { path: format!("{}/{name}", line.full_path()), watch: false };
    let (result, _) =
        by(deadline, line).call("participants", line.path(), &request, Idempotency::Idempotent).await?;
    match result {
        Ok(Response::Data { data, stat }) => Ok(Some((data.unwrap_or_default(), stat))),
        Ok(_) | Err(Code::NO_NODE) => Ok(None),
        Err(code) => Err(Error::from_code(code, "participants").at(line.path())),
    }
}

/// The contender with this name, whose node was found so; `None` for a name that is no contender's.
pub(super) fn of_node(line: &Line, name: String, (identity, stat): Found) -> Option<Participant> {
    let (sequence, role) = line.contender(&name)?;
    let times = Stat::from(stat);
    Some(Participant {
        name,
        sequence,
        role,
        holds: false,
        identity,
        since: times.created,
        session_id: stat.ephemeral_owner,
        fence: Fence::from_czxid(stat.czxid),
        has_payload: line.has_payload(),
        // Another write of the data makes it unknown.
        changed: (stat.version == 1).then_some(times.modified),
    })
}
