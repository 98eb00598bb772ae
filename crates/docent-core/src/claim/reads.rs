use super::wanted::Wanted;
use crate::guard::SessionGeneration;
use crate::node::Node;
use crate::operation::Shared;
use crate::session::abilities::Ability;
use crate::session::{Cause, Lane, Pending, lookup};
use bytes::Bytes;
use docent_proto::{Code, MultiOp, MultiResult, Request, Response, Stat};
use std::collections::VecDeque;
use tokio::time::{Instant, timeout_at};

/// Reads of claimed nodes in flight, several in one request if the servers support that.
pub(super) struct Reads<'a> {
    generation: &'a SessionGeneration,
    /// The requests that were not answered yet, each with its nodes.
    pending: VecDeque<(&'a [Wanted], Pending)>,
}

#[derive(Debug)]
pub(super) enum Unread {
    /// Contains the full path that the refusal concerns.
    Refused(Code, String),
    Cause(Cause),
}

/// Data and stat of a node; `None` if the node does not exist.
type Found = Option<(Option<Bytes>, Stat)>;

impl<'a> Reads<'a> {
    /// Submits the reads, which have their place in the order of calls when this returns.
    pub(super) fn submit(
        shared: &'a Shared,
        generation: &'a SessionGeneration,
        wanted: &'a [Wanted],
    ) -> Self {
        let lacks = shared.abilities.lacks(Ability::MultiReads);
        let max = if lacks { 1 } else { shared.max_reads_per_request() };
        let submit = |nodes: &'a [Wanted]| (nodes, generation.session.submit(request(nodes), Lane::Call));
        Self { generation, pending: wanted.chunks(max).map(submit).collect() }
    }

    /// Returns the nodes. A read without a reply, or refused by an overloaded server, is repeated in the same
    /// session after a `sync`.
    pub(super) async fn all(mut self, deadline: Instant) -> Result<Vec<Option<Node>>, Unread> {
        let generation = self.generation;
        let mut all = Vec::new();
        while let Some((nodes, mut read)) = self.pending.pop_front() {
            let outcome = read.by(deadline).await;
            let found = match outcome.answer() {
                Ok(reply) => match reply.result {
                    Err(Code::UNIMPLEMENTED) if nodes.len() > 1 => {
                        read_one_by_one(generation, nodes, deadline).await?
                    }
                    result => found(nodes.len(), result)
                        .map_err(|(index, code)| Unread::Refused(code, nodes[index].node.clone()))?,
                },
                // Also if a server was overloaded: re-created claims would be counted again.
                Err(Cause::LinkLost | Cause::QueueFull) => {
                    read_one_by_one(generation, nodes, deadline).await?
                }
                Err(Cause::TooLarge { .. }) if nodes.len() > 1 => {
                    read_one_by_one(generation, nodes, deadline).await?
                }
                Err(cause) => return Err(Unread::Cause(cause)),
            };
            let node = |(data, stat): (Option<Bytes>, Stat)| {
                let data = data.unwrap_or_default();
                // Copy the data: a slice of the reply would keep the whole reply in memory.
                let data = if nodes.len() > 1 { Bytes::copy_from_slice(&data) } else { data };
                Node { data, stat: stat.into() }
            };
            all.extend(found.into_iter().map(|found| found.map(node)));
        }
        Ok(all)
    }
}

fn request(nodes: &[Wanted]) -> Request {
    match nodes {
        [one] => Request::GetData { path: one.node.clone(), watch: false },
        nodes => {
            Request::MultiRead(nodes.iter().map(|one| MultiOp::GetData { path: one.node.clone() }).collect())
        }
    }
}

/// Extracts the nodes from the answer to a request for `count` nodes.
///
/// # Errors
/// The refusal, with the index of the node that it concerns; 0 if it concerns all of them.
fn found(count: usize, result: Result<Response, Code>) -> Result<Vec<Found>, (usize, Code)> {
    match result {
        Ok(Response::Data { data, stat }) if count == 1 => Ok(vec![Some((data, stat))]),
        Err(Code::NO_NODE) if count == 1 => Ok(vec![None]),
        Ok(Response::Multi(results)) if results.len() == count => {
            let one = |(index, result)| match result {
                MultiResult::Data { data, stat } => Ok(Some((data, *stat))),
                MultiResult::Failed(Code::NO_NODE) => Ok(None),
                MultiResult::Failed(code) => Err((index, code)),
                _ => Err((index, Code::MARSHALLING_ERROR)),
            };
            results.into_iter().enumerate().map(one).collect()
        }
        Ok(_) => Err((0, Code::MARSHALLING_ERROR)),
        Err(code) => Err((0, code)),
    }
}

/// Reads nodes one by one.
async fn read_one_by_one(
    generation: &SessionGeneration,
    nodes: &[Wanted],
    deadline: Instant,
) -> Result<Vec<Found>, Unread> {
    let mut found = Vec::with_capacity(nodes.len());
    for one in nodes {
        let read = timeout_at(deadline, lookup::read(generation, &one.node)).await;
        found.push(read.map_err(|_| Unread::Cause(Cause::Deadline))?.map_err(Unread::Cause)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::session::{Outcome, Reply, SessionEnd};
    use crate::time::deadline;
    use std::time::Duration;

    /// Result of reads of `count` nodes in one request that was answered with `result`.
    async fn read(count: usize, result: Result<Response, Code>) -> Result<Vec<Option<Node>>, Unread> {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let wanted: Vec<_> = (0..count).map(|_| Wanted::of("/item")).collect();
        let reply = Reply { result, zxid: 1, watch: None, watches: Vec::new() };
        let generation = client.shared().generation();
        let pending = VecDeque::from([(&wanted[..], Pending::ready(Outcome::Reply(reply)))]);
        let reads = Reads { generation: &generation, pending };
        reads.all(deadline(Duration::from_millis(50))).await
    }

    async fn unread(code: Code) -> Unread {
        read(1, Err(code)).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_read_throttled_by_a_server_is_retried_and_does_not_refuse_the_claims() {
        // There is no server that would answer.
        assert!(matches!(unread(Code::THROTTLED).await, Unread::Cause(Cause::Deadline)));
        let expired = unread(Code::SESSION_EXPIRED).await;
        assert!(matches!(expired, Unread::Cause(Cause::Ended(SessionEnd::Expired))));
        assert!(matches!(unread(Code::NO_AUTH).await, Unread::Refused(Code::NO_AUTH, _)));
    }

    #[tokio::test]
    async fn several_nodes_are_read_in_one_request_if_servers_support_it() {
        let data = MultiResult::Data { data: Some(Bytes::from_static(b"item")), stat: Box::default() };
        let missing = MultiResult::Failed(Code::NO_NODE);
        let nodes = read(2, Ok(Response::Multi(vec![data, missing]))).await.unwrap();
        assert_eq!(
            nodes.iter().map(|node| node.as_ref().map(|node| &node.data[..])).collect::<Vec<_>>(),
            [Some(&b"item"[..]), None]
        );
        let refused = read(1, Ok(Response::Multi(vec![MultiResult::Failed(Code::NO_AUTH)]))).await;
        assert!(matches!(refused, Err(Unread::Refused(Code::NO_AUTH, _))));
        // The nodes are then read one by one, from a server that does not exist.
        let unknown = read(2, Err(Code::UNIMPLEMENTED)).await;
        assert!(matches!(unknown, Err(Unread::Cause(Cause::Deadline))));
    }
}
