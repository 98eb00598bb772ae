use super::draw::list;
use super::line::Line;
use super::name::is_in_danger_zone;
use super::sides::Role;
use crate::client::Outcomes;
use crate::error::Error;
use crate::fence::Fence;
use bytes::Bytes;
use docent_proto::{Code, Request, Response};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::time::{Duration, SystemTime};

/// Reads of participants under way at the same time.
const IN_FLIGHT: usize = 64;

/// Somebody in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Participant {
    /// Name of the node.
    pub name: String,
    /// The number in the line.
    pub sequence: i32,
    /// Whether it goes together with others.
    pub role: Role,
    /// True for whoever nobody ahead keeps from holding: a holder, unless it was lost.
    pub holds: bool,
    /// What was written into the node: by default an address or host name.
    pub identity: Bytes,
    /// When the place was taken, by the server's clock.
    pub since: SystemTime,
    /// The session that owns the place.
    pub session_id: i64,
    /// The fence it has or would have.
    pub fence: Fence,
}

impl Participant {
    /// For how long it has had its place: by the server's clock when it took it and by the local one now. Zero if the server's is
    /// ahead.
    pub fn age(&self) -> Duration {
        SystemTime::now().duration_since(self.since).unwrap_or_default()
    }
}

/// Names of all children; none when there is no line.
pub(super) async fn names(line: &Line) -> Result<Vec<String>, Error> {
    let (result, _) =
        line.client().call("participants", line.path(), &|| list(line), Outcomes::Repeatable).await?;
    match result {
        Ok(Response::Children { names, .. }) => Ok(names),
        Ok(_) | Err(Code::NO_NODE) => Ok(Vec::new()),
        Err(code) => Err(Error::from_code(code, "participants").at(line.path())),
    }
}

pub(super) async fn list_all(line: &Line) -> Result<Vec<Participant>, Error> {
    let names = names(line).await?;
    let mut participants: Vec<Participant> = stream::iter(names)
        .map(|name| read(line, name))
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
    let sharing = participants.iter().take_while(|participant| participant.role == Role::Shared).count();
    // Without readers in front it is the first one, whatever that is.
    participants.iter_mut().take(sharing.max(1)).for_each(|participant| participant.holds = true);
    Ok(participants)
}

pub(super) async fn first(line: &Line) -> Result<Option<Participant>, Error> {
    loop {
        let names = names(line).await?;
        let contenders = names.into_iter().filter_map(|name| Some((line.contender(&name)?, name)));
        let contenders: Vec<_> = contenders.collect();
        if contenders.iter().any(|((sequence, _), _)| is_in_danger_zone(*sequence)) {
            return Ok(list_all(line).await?.into_iter().next());
        }
        let Some((_, name)) = contenders.into_iter().min() else { return Ok(None) };
        // It may have left since.
        if let Some(first) = read(line, name).await? {
            return Ok(Some(Participant { holds: true, ..first }));
        }
    }
}

/// `None` for a name that is no contender's, and for one that has left since.
async fn read(line: &Line, name: String) -> Result<Option<Participant>, Error> {
    let Some((sequence, role)) = line.contender(&name) else { return Ok(None) };
    let request = || Request::GetData { path: format!("{}/{name}", line.full_path()), watch: false };
    let (result, _) = line.client().call("participants", line.path(), &request, Outcomes::Repeatable).await?;
    match result {
        Ok(Response::Data { data, stat }) => Ok(Some(Participant {
            name,
            sequence,
            role,
            holds: false,
            identity: data.unwrap_or_default(),
            since: crate::node::Stat::from(stat).created,
            session_id: stat.ephemeral_owner,
            fence: Fence::from_czxid(stat.czxid),
        })),
        Ok(_) | Err(Code::NO_NODE) => Ok(None),
        Err(code) => Err(Error::from_code(code, "participants").at(line.path())),
    }
}
