use super::Line;
use super::draw::list_request;
use super::name::is_in_danger_zone;
use crate::client::Client;
use crate::error::Error;
use crate::guard::{Fence, REVOKE};
use crate::hold::Role;
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

/// Maximum number of concurrent reads of participants.
const IN_FLIGHT: usize = 64;

/// Maximum number of characters of an identity text.
const LONGEST: usize = 200;

/// A contender in a line, as read from its node.
///
/// The serialized form has the same field names, except for `since_ms` and `held_since_ms`, in milliseconds
/// since 1970. `session_id` is a string such as `"0x10000a3f"`, and `identity` is the [identity
/// text](Self::identity_text).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Participant {
    /// Name of the node.
    pub name: String,
    /// Sequence number in the line.
    pub sequence: i32,
    /// Role: exclusive or shared.
    pub role: Role,
    /// True if no contender ahead prevents this one from holding: it is a holder, unless its hold was lost.
    /// False for all participants if the first place of the line changed during each of three reads.
    pub holds: bool,
    /// Data of the node. By default this is host, process and label in the form of [`ClientIdentity`];
    /// Curator writes an address. [`identity_text`](Self::identity_text) is the readable form.
    pub identity: Bytes,
    /// Time at which the participant took its place, by the server's clock.
    pub since: SystemTime,
    /// Session that owns the place.
    pub session_id: i64,
    /// Fence that the participant has or would have.
    pub fence: Fence,
    /// True if the identity is user data, which must not be shown.
    pub(super) has_payload: bool,
    /// Time of the only change of the node's data, if there was exactly one.
    pub(super) changed: Option<SystemTime>,
}

impl Participant {
    /// The identity as one line of at most 200 characters, without control characters.
    ///
    /// `None` if the node holds no text, was overwritten by a request to give up the place, or is in a line
    /// whose nodes hold [user data](Line::with_payload).
    pub fn identity_text(&self) -> Option<String> {
        let text = std::str::from_utf8(&self.identity)
            .ok()
            .filter(|_| !self.has_payload && self.identity != REVOKE)?;
        let line: String = text.chars().filter(|char| !char.is_control()).take(LONGEST).collect();
        (!line.trim().is_empty()).then_some(line)
    }

    /// The [identity text](Self::identity_text) if there is one, otherwise the session, as `session
    /// 0x10000a3f`.
    pub fn owner_text(&self) -> String {
        self.identity_text().unwrap_or_else(|| format!("session {:#x}", self.session_id))
    }

    /// Host, process and label of the participant's client; `None` if the identity has another form.
    pub fn client(&self) -> Option<ClientIdentity> {
        let text = std::str::from_utf8(&self.identity).ok().filter(|_| !self.has_payload)?;
        ClientIdentity::parse(text)
    }

    /// Returns true if a client asked this participant to give up its place.
    pub fn is_revoked(&self) -> bool {
        self.identity == REVOKE
    }

    /// Time since which the participant holds, by the server's clock. The participant records this time with
    /// its first heartbeat, up to a sixth of its session timeout after the hold began.
    ///
    /// `None` while the participant waits, before that heartbeat, after it [is revoked](Self::is_revoked),
    /// and after it changed its data again, as a proclaiming leader does. Also `None` for holders that record
    /// nothing, such as Curator's.
    pub fn held_since(&self) -> Option<SystemTime> {
        self.changed.filter(|_| self.holds && !self.is_revoked())
    }

    /// Duration of the hold. See [`held_since`](Self::held_since).
    pub fn held_for(&self) -> Option<Duration> {
        Some(SystemTime::now().duration_since(self.held_since()?).unwrap_or_default())
    }

    /// Time since the participant took its place: the difference between the local clock and the server's
    /// time of creation. Zero if the server's clock is ahead.
    pub fn age(&self) -> Duration {
        SystemTime::now().duration_since(self.since).unwrap_or_default()
    }
}

// Data that is not an identity is not printed.
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

/// Identity of a participant, in the form in which it may be shown.
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
    /// Reads the first contender in the line: the holder, unless its hold was lost. Returns `None` if the
    /// line is empty.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn first(&self) -> Result<Option<Participant>, Error> {
        front(self).await
    }

    /// Reads all contenders in the line, starting with the holder.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`. A line that does not exist is empty.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn participants(&self) -> Result<Vec<Participant>, Error> {
        list_all(self).await
    }

    /// Asks a participant to give up its place: the `revoked` future of its guard resolves. The participant
    /// may ignore the request. The format is Curator's.
    ///
    /// # Errors
    /// `NoNode` if the participant has left; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: repeating the request does no harm.
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

    /// Returns true if the line is empty, as the server of this client's connection knows it.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn is_empty(&self) -> Result<bool, Error> {
        Ok(names(self).await?.iter().all(|name| self.contender(name).is_none()))
    }

    /// Returns the number of contenders in the line, as the server of this client's connection knows it.
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

/// Maximum number of times that a line is read if its first place changes during each read.
const MAX_LISTINGS: u32 = 3;

/// Returns a client whose operations end by `deadline`, which covers all reads of one view of the line.
fn by(deadline: Instant, line: &Line) -> Client {
    line.client().with_operation_timeout(deadline.saturating_duration_since(Instant::now()))
}

/// Names of all children; empty if the line does not exist.
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

/// Reads all participants. Marks no participant as a holder if the line changed during each of several reads.
async fn list_by(line: &Line, deadline: Instant) -> Result<Vec<Participant>, Error> {
    for attempt in 1.. {
        let names = names_by(line, deadline).await?;
        let first = names.iter().filter_map(|name| line.contender(name)).min();
        let mut participants: Vec<Participant> = stream::iter(names)
            .map(|name| read(line, name, deadline))
            .buffer_unordered(IN_FLIGHT)
            .try_filter_map(|participant| std::future::ready(Ok(participant)))
            .try_collect()
            .await?;
        // Near the end of the servers' counter, numbers give no reliable order.
        let by_creation = participants.iter().any(|participant| is_in_danger_zone(participant.sequence));
        participants.sort_by_key(|participant| {
            let number = (!by_creation).then_some((participant.sequence, participant.role));
            (number, participant.fence)
        });
        let present = participants.first().map(|first| (first.sequence, first.role));
        // If the first contender has left since the listing, the next one may also have left after it was
        // read.
        let is_certain = by_creation || present == first;
        if is_certain {
            mark_holders(&mut participants);
        }
        if is_certain || attempt == MAX_LISTINGS {
            return Ok(participants);
        }
    }
    unreachable!("the number of reads is limited")
}

/// Marks the holders among all `participants` of a line, which are in line order.
fn mark_holders(participants: &mut [Participant]) {
    let sharing = participants.iter().take_while(|participant| participant.role == Role::Shared).count();
    // If no readers are at the front, the first contender holds. So does a reader with the same number, which
    // the first contender created for its downgrade.
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
        // The contender may have left since the listing.
        if let Some(first) = read(line, name, deadline).await? {
            return Ok(Some(Participant { holds: true, ..first }));
        }
    }
}

/// Returns `None` if the name belongs to no contender, or if the contender has left.
pub(super) async fn read(line: &Line, name: String, deadline: Instant) -> Result<Option<Participant>, Error> {
    if line.contender(&name).is_none() {
        return Ok(None);
    }
    let found = read_node(line, &name, deadline).await?;
    Ok(found.and_then(|found| of_node(line, name, found)))
}

/// Data and stat of a node.
pub(super) type Found = (Bytes, docent_proto::Stat);

/// Reads data and stat of the node with this name; `None` if the contender has left.
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

/// Builds the participant from the data and stat of its node; `None` if the name belongs to no contender.
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
        // After a second write of the data, the time of the first one is unknown.
        changed: (stat.version == 1).then_some(times.modified),
    })
}
