//! Requests about the line, repeated until there is an answer.

use super::draw::list;
use super::line::Ticket;
use super::place::Place;
use super::turn::WaitError;
use crate::error::{Error, ErrorKind};
use crate::session::{Cause, Lane, Outcome, Reply, SessionEnd};
use docent_proto::{Code, Request, Response};
use std::time::Duration;

/// Pause before a request is sent again that a server or the own queue did not take.
const BUSY: Duration = Duration::from_millis(200);

impl Ticket {
    pub(super) async fn look(&self) -> Result<Place, WaitError> {
        let listed = self.generation.session.submit(list(&self.line), Lane::Call).await;
        self.place_in(listed).await
    }

    pub(super) async fn place_in(&self, mut listed: Outcome) -> Result<Place, WaitError> {
        loop {
            if let Some(reply) = self.reply(listed).await? {
                return match reply.result {
                    Ok(Response::Children { names, .. }) => {
                        // A node that a lost create made late may stand in this listing (decision 11).
                        self.generation.lost_creates.pass_by(self.line.full_path(), &names);
                        Ok(self.line.place(self.name(), &names))
                    }
                    // Without the line there is no ticket.
                    Ok(_) | Err(Code::NO_NODE) => Err(WaitError::Gone),
                    Err(code) => Err(Error::from_code(code, "acquire").at(self.line.path()).into()),
                };
            }
            listed = self.generation.session.submit(list(&self.line), Lane::Call).await;
        }
    }

    /// The place by the transactions that created the contenders: one read for each, all in one trip.
    pub(super) async fn place_by_creation(&self, contenders: Vec<String>) -> Result<Place, WaitError> {
        let reads = contenders.into_iter().map(|name| {
            let path = format!("{}/{name}", self.line.full_path());
            let stat = self.generation.session.submit(Request::Exists { path, watch: false }, Lane::Call);
            (name, stat)
        });
        let mut created = Vec::new();
        for (name, stat) in reads.collect::<Vec<_>>() {
            match self.reply(stat.await).await? {
                None => return Ok(Place::Unlisted),
                Some(reply) => {
                    // A contender that left since the listing may have stepped down, and stand in the line
                    // under another name: the line is listed again.
                    let Ok(Response::Stat(stat)) = reply.result else { return Ok(Place::Unlisted) };
                    created.push((stat.czxid, name));
                }
            }
        }
        Ok(self.line.place_by_creation(self.name(), &created))
    }

    /// Returns the answer, or `None` when the caller shall send the request again: all requests about a line
    /// can be repeated. A wait that may have taken hours is not given up because a server or the own queue is
    /// too busy now.
    pub(super) async fn reply(&self, outcome: Outcome) -> Result<Option<Reply>, WaitError> {
        match outcome {
            Outcome::Reply(reply) if reply.result == Err(Code::SESSION_EXPIRED) => Err(WaitError::Gone),
            Outcome::Reply(reply) if reply.result != Err(Code::THROTTLED) => Ok(Some(reply)),
            Outcome::NotSent(Cause::LinkLost) | Outcome::Unknown(Cause::LinkLost) => Ok(None),
            Outcome::NotSent(Cause::Ended(end)) | Outcome::Unknown(Cause::Ended(end)) => Err(self.ended(end)),
            Outcome::Unknown(Cause::TooLarge { size, limit }) => {
                Err(Error::too_large("acquire", size, limit).at(self.line.path()).into())
            }
            Outcome::Reply(_) | Outcome::NotSent(_) | Outcome::Unknown(_) => {
                tokio::time::sleep(BUSY).await;
                Ok(None)
            }
        }
    }

    pub(super) fn ended(&self, end: SessionEnd) -> WaitError {
        match end {
            SessionEnd::Closed => self.error(ErrorKind::Closed).into(),
            SessionEnd::AuthFailed => self.error(ErrorKind::AuthFailed).into(),
            SessionEnd::Expired | SessionEnd::Abandoned | SessionEnd::RolledBack => WaitError::Gone,
        }
    }

    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, "acquire").at(self.line.path())
    }
}
