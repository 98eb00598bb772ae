use super::guard::Claim;
use super::node::ClaimNode;
use crate::client::{Attempts, Client, Outcomes, resolve, unexpected};
use crate::clock::Timestamp;
use crate::epoch::Epoch;
use crate::error::{Error, ErrorKind};
use crate::node::Node;
use crate::session::{Cause, Lane, Outcome, Pending, Reply};
use crate::telemetry;
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, MultiOp, MultiResult, Request, Response};
use std::sync::Arc;
use tokio::time::Instant;
use uuid::Uuid;

/// What is to be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The path of the claim: an ephemeral node whose parent exists.
    pub claim: String,
    /// The path of the node that it is a claim of, which is read in the same trip.
    pub node: String,
}

/// What became of an attempt to claim.
#[derive(Debug)]
pub enum Claimed {
    /// All are ours, in the order that was asked for, each with its node as it was read after that; `None` when there is no such
    /// node.
    All(Vec<(Claim, Option<Node>)>),
    /// Nothing was claimed: the one with this index is somebody's.
    Taken(usize),
    /// Nothing was claimed: the claim with this index has no parent.
    NoParent(usize),
}

/// Claims on their way. If it is dropped they are deleted as soon as their fate is known.
struct Intent {
    epoch: Arc<Epoch>,
    paths: Vec<String>,
    /// What the claims have for their data: by that they are known to be ours.
    id: Bytes,
    create: Pending,
    submitted: Timestamp,
    /// True when the reply was lost: they may be there.
    unknown: bool,
}

impl Intent {
    fn submit(client: &Client, epoch: &Arc<Epoch>, paths: Vec<String>) -> Self {
        let id = Bytes::from(format!("{} {}", Uuid::new_v4(), client.core().identity));
        let create = |path: &String| {
            let acl = client.core().acl(path);
            Create::new(path.clone(), id.clone(), acl, CreateMode::Ephemeral, 0)
        };
        let request = match paths.as_slice() {
            [path] => Request::Create(create(path)),
            paths => Request::Multi(paths.iter().map(|path| MultiOp::Create(create(path))).collect()),
        };
        let create = epoch.session.submit(request, Lane::Call);
        let submitted = epoch.clock.now();
        Self { epoch: Arc::clone(epoch), paths, id, create, submitted, unknown: false }
    }

    /// Looks for the first claim after the reply was lost, in the same session: they are all there or none is. Returns the
    /// transaction that made them.
    async fn find(&mut self, attempts: &Attempts<'_>) -> Result<Option<i64>, Error> {
        self.unknown = true;
        let look = resolve::read(&self.epoch, &self.paths[0]);
        match tokio::time::timeout_at(attempts.deadline, look).await {
            Ok(Ok(found)) => {
                self.unknown = false;
                if planted!(NoNodeIsClaim) && found.is_none() {
                    return Ok(Some(self.epoch.session.last_zxid()));
                }
                let ours = found.filter(|(data, _)| data.as_ref() == Some(&self.id));
                Ok(ours.map(|(_, stat)| stat.czxid))
            }
            // They go with their session.
            Ok(Err(Cause::Ended(_))) => Ok(None),
            Ok(Err(_)) | Err(_) => Err(attempts.timeout()),
        }
    }

    fn take_paths(&mut self) -> Vec<String> {
        self.unknown = false;
        std::mem::take(&mut self.paths)
    }
}

impl Drop for Intent {
    fn drop(&mut self) {
        let reply = self.create.abandon();
        if reply.is_some() || self.unknown {
            let paths = std::mem::take(&mut self.paths);
            self.epoch.cleanup.undo_claims(&self.epoch, paths, self.id.clone(), reply);
        }
    }
}

/// What an attempt came to.
enum Attempt {
    Created(i64),
    Refused(usize, Code),
    Again,
}

/// Claims all of `wanted` in one write, and reads their nodes in the same trip.
pub(super) async fn draw(client: &Client, wanted: &[Wanted], recipe: &'static str) -> Result<Claimed, Error> {
    let Some(first) = wanted.first() else {
        return Err(Error::invalid_input("claim", "a batch of 0 must be at least 1"));
    };
    let namespace = &client.core().namespace;
    let full = |path: &String| namespace.full("claim", path);
    let claims = wanted.iter().map(|wanted| full(&wanted.claim)).collect::<Result<Vec<_>, _>>()?;
    let nodes = wanted.iter().map(|wanted| full(&wanted.node)).collect::<Result<Vec<_>, _>>()?;
    // One that is doubled is known by its data, and undone.
    let mut attempts = Attempts::new(client, "claim", &first.claim, Outcomes::Repeatable);
    loop {
        let epoch = attempts.epoch().await?;
        let mut intent = Intent::submit(client, &epoch, claims.clone());
        let reads: Vec<_> = nodes.iter().map(|path| epoch.session.submit(read(path), Lane::Call)).collect();
        match created(&mut intent, &mut attempts, &epoch).await? {
            Attempt::Created(czxid) => {
                // Its timeout is known now. What was made is undone.
                if let Some(detail) = epoch.refuses_guards(client.core().config.accept_short_lease) {
                    intent.unknown = true;
                    return Err(attempts.error(ErrorKind::ShortLease).because(detail));
                }
                let held = hold(client, intent, wanted, czxid, recipe);
                let read = read_all(&epoch, &nodes, reads, attempts.deadline).await;
                match (held, read) {
                    (Some(held), Ok(read)) => return Ok(Claimed::All(held.into_iter().zip(read).collect())),
                    (_, Err(Unread::Refused(code))) => {
                        return Err(Error::from_code(code, "claim").at(&first.node));
                    }
                    // The lease ran out before the reply came, or the link did not last for the reads: once more.
                    _ if Instant::now() >= attempts.deadline => return Err(attempts.timeout()),
                    (_, Err(Unread::Cause(cause))) => attempts.retry(&epoch, false, cause).await?,
                    (None, _) => attempts.retry(&epoch, false, Cause::LinkLost).await?,
                }
            }
            Attempt::Refused(index, Code::NODE_EXISTS) => return Ok(Claimed::Taken(index)),
            Attempt::Refused(index, Code::NO_NODE) => return Ok(Claimed::NoParent(index)),
            Attempt::Refused(index, code) => {
                return Err(Error::from_code(code, "claim").at(&wanted[index].claim));
            }
            Attempt::Again => {}
        }
    }
}

async fn created(
    intent: &mut Intent,
    attempts: &mut Attempts<'_>,
    epoch: &Arc<Epoch>,
) -> Result<Attempt, Error> {
    let outcome = intent.create.by(attempts.deadline).await;
    if let Outcome::Unknown(Cause::LinkLost) = outcome
        && let Some(czxid) = intent.find(attempts).await?
    {
        return Ok(Attempt::Created(czxid));
    }
    let zxid = if let Outcome::Reply(Reply { zxid, .. }) = &outcome { *zxid } else { 0 };
    Ok(match attempts.judge(epoch, outcome).await? {
        None => Attempt::Again,
        Some(Ok(Response::Created { stat, .. })) => Attempt::Created(stat.map_or(zxid, |stat| stat.czxid)),
        Some(Ok(Response::Multi(results))) => match refused(&results) {
            Some((index, code)) => Attempt::Refused(index, code),
            None => Attempt::Created(zxid),
        },
        Some(Ok(other)) => return Err(unexpected("claim", &other)),
        Some(Err(code)) => Attempt::Refused(0, code),
    })
}

fn refused(results: &[MultiResult]) -> Option<(usize, Code)> {
    results.iter().enumerate().find_map(|(index, result)| match result {
        MultiResult::Failed(code) if *code != Code::OK => Some((index, *code)),
        _ => None,
    })
}

/// Holds what was claimed; `None`, and it is deleted, when the lease has run out.
fn hold(
    client: &Client,
    mut intent: Intent,
    wanted: &[Wanted],
    czxid: i64,
    recipe: &'static str,
) -> Option<Vec<Claim>> {
    // From here on the nodes are deleted when what holds them is dropped.
    let paths = intent.take_paths();
    let epoch = &intent.epoch;
    let claims = paths.into_iter().zip(wanted).map(|(path, wanted)| {
        let node = Arc::new(ClaimNode::new(Arc::clone(epoch), path, czxid));
        match epoch.hold_claim(&node, recipe) {
            Some(held) => {
                telemetry::acquired(recipe, epoch.clock.now().since(intent.submitted));
                Some(Claim::new(client.clone(), wanted.claim.clone(), node, held))
            }
            None => {
                Claim::give_back(node);
                None
            }
        }
    });
    // All of them are looked at, so that all are given back.
    claims.collect::<Vec<_>>().into_iter().collect()
}

fn read(path: &str) -> Request {
    Request::GetData { path: path.to_owned(), watch: false }
}

enum Unread {
    Refused(Code),
    Cause(Cause),
}

/// The nodes, read again in the same session where the link was lost.
async fn read_all(
    epoch: &Epoch,
    paths: &[String],
    reads: Vec<Pending>,
    deadline: Instant,
) -> Result<Vec<Option<Node>>, Unread> {
    let mut nodes = Vec::with_capacity(paths.len());
    for (path, mut read) in paths.iter().zip(reads) {
        let found = match read.by(deadline).await {
            Outcome::Reply(reply) => match reply.result {
                Ok(Response::Data { data, stat }) => Some((data, stat)),
                Ok(_) | Err(Code::NO_NODE) => None,
                Err(code) => return Err(Unread::Refused(code)),
            },
            Outcome::NotSent(Cause::LinkLost) | Outcome::Unknown(Cause::LinkLost) => {
                let again = tokio::time::timeout_at(deadline, resolve::read(epoch, path)).await;
                again.map_err(|_| Unread::Cause(Cause::Deadline))?.map_err(Unread::Cause)?
            }
            Outcome::NotSent(cause) | Outcome::Unknown(cause) => return Err(Unread::Cause(cause)),
        };
        nodes.push(found.map(|(data, stat)| Node { data: data.unwrap_or_default(), stat: stat.into() }));
    }
    Ok(nodes)
}
