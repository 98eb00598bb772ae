//! Reads of several nodes in one request.

use super::Client;
use crate::error::{Error, if_exists};
use crate::node::{Children, Node};
use crate::operation::Idempotency;
use crate::session::abilities::Ability;
use docent_proto::{Code, MultiOp, MultiResult, Request, Response};
use futures_util::future::{join_all, try_join_all};

/// Lists the children of several nodes, in order, in one round trip, and in one request if the servers
/// support that. Returns `None` for a node that does not exist.
///
/// # Errors
/// `NoAuth`, `InvalidInput`, `Timeout`, `Closed`.
///
/// # Cancel safety
/// This function is cancel safe.
pub async fn children_of_all(client: &Client, paths: &[&str]) -> Result<Vec<Option<Children>>, Error> {
    // A listing in a multi-read does not include the node's stat.
    let reads = |path: String| [MultiOp::GetData { path: path.clone() }, MultiOp::GetChildren { path }];
    match many(client, "children", paths, reads).await? {
        Some(results) => {
            let listed = paths.iter().zip(results.chunks_exact(2));
            listed
                .map(|(path, results)| {
                    listed_in(results).map_err(|code| Error::from_code(code, "children").at(path))
                })
                .collect()
        }
        // Submitted in order.
        None => try_join_all(paths.iter().map(|path| async { if_exists(client.children(path).await) })).await,
    }
}

/// Reads several nodes, in order, in as few requests as their replies may have room for, or in one round trip
/// if the servers do not support reads of several nodes.
///
/// # Errors
/// Those of the request: `InvalidInput`, `Timeout`, `Closed`. The results have those of the nodes, such as
/// `NoNode` and `NoAuth`.
///
/// # Cancel safety
/// This function is cancel safe.
pub async fn get_all(client: &Client, paths: &[&str]) -> Result<Vec<Result<Node, Error>>, Error> {
    let mut nodes = Vec::with_capacity(paths.len());
    // A reply that is larger than the client accepts would end the link each time.
    for paths in paths.chunks(client.shared().max_reads_per_request()) {
        let read = match many(client, "get", paths, |path| [MultiOp::GetData { path }]).await? {
            Some(results) => paths.iter().zip(results).map(|(path, result)| read_in(result, path)).collect(),
            None => join_all(paths.iter().map(|path| client.get(path))).await,
        };
        nodes.extend(read);
    }
    Ok(nodes)
}

fn read_in(result: MultiResult, path: &str) -> Result<Node, Error> {
    match result {
        MultiResult::Data { data, stat } => Ok(Node { data: data.unwrap_or_default(), stat: (*stat).into() }),
        MultiResult::Failed(code) => Err(Error::from_code(code, "get").at(path)),
        _ => Err(Error::from_code(Code::MARSHALLING_ERROR, "get").at(path)),
    }
}

/// Sends the `reads` of all paths in one request, and returns their results. Returns `None` if there is
/// nothing to send or the servers do not support such requests.
async fn many<const N: usize>(
    client: &Client,
    operation: &'static str,
    paths: &[&str],
    reads: impl Fn(String) -> [MultiOp; N] + Send + Sync,
) -> Result<Option<Vec<MultiResult>>, Error> {
    let [first, ..] = paths else { return Ok(None) };
    if client.shared().abilities.lacks(Ability::MultiReads) {
        return Ok(None);
    }
    let full = |path: &&str| client.shared().namespace.full(operation, path);
    let full = paths.iter().map(full).collect::<Result<Vec<_>, _>>()?;
    let request = || Request::MultiRead(full.iter().cloned().flat_map(&reads).collect());
    let (result, _) = client.call(operation, first, &request, Idempotency::Idempotent).await?;
    match result {
        Ok(Response::Multi(results)) if results.len() == N * paths.len() => Ok(Some(results)),
        Err(Code::UNIMPLEMENTED) => {
            client.shared().learn_no_multi_reads();
            Ok(None)
        }
        Ok(_) => Err(Error::from_code(Code::MARSHALLING_ERROR, operation).at(first)),
        Err(code) => Err(Error::from_code(code, operation).at(first)),
    }
}

/// Returns the children, from the results of reading a node and listing it.
fn listed_in(results: &[MultiResult]) -> Result<Option<Children>, Code> {
    match results {
        [MultiResult::Data { stat, .. }, MultiResult::Children(names)] => {
            Ok(Some(Children { names: names.clone(), stat: (**stat).into() }))
        }
        // The node may have been created or deleted between the two.
        [MultiResult::Failed(Code::NO_NODE), _] | [_, MultiResult::Failed(Code::NO_NODE)] => Ok(None),
        [MultiResult::Failed(code), _] | [_, MultiResult::Failed(code)] => Err(*code),
        _ => Err(Code::MARSHALLING_ERROR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_returned_with_the_stat_that_was_read_before_it() {
        let data = || MultiResult::Data { data: None, stat: Box::default() };
        let names = || MultiResult::Children(vec!["one".to_owned()]);
        let listed = listed_in(&[data(), names()]).unwrap().unwrap();
        assert_eq!(listed.names, ["one"]);
        let missing = || MultiResult::Failed(Code::NO_NODE);
        for results in [[missing(), missing()], [data(), missing()], [missing(), names()]] {
            assert!(listed_in(&results).unwrap().is_none());
        }
        let refused = MultiResult::Failed(Code::NO_AUTH);
        assert_eq!(listed_in(&[refused, names()]).unwrap_err(), Code::NO_AUTH);
        assert_eq!(listed_in(&[names(), names()]).unwrap_err(), Code::MARSHALLING_ERROR);
    }
}
