use super::Client;
use crate::error::{Error, ErrorKind};
use crate::node::Children;
use crate::operation::Idempotency;
use crate::session::abilities::Ability;
use docent_proto::{Code, MultiOp, MultiResult, Request, Response};
use futures_util::future::try_join_all;

/// Lists the children of several nodes, in order, in one round trip, and in one request if the servers
/// support that. Returns `None` for a node that does not exist.
///
/// # Errors
/// `NoAuth`, `InvalidInput`, `Timeout`, `Closed`.
///
/// # Cancel safety
/// This function is cancel safe.
pub async fn children_of_all(client: &Client, paths: &[&str]) -> Result<Vec<Option<Children>>, Error> {
    if let [first, ..] = paths
        && !client.shared().abilities.lacks(Ability::MultiReads)
    {
        let full = |path: &&str| client.shared().namespace.full("children", path);
        let full = paths.iter().map(full).collect::<Result<Vec<_>, _>>()?;
        // A listing in a multi-read does not include the node's stat.
        let reads = |path: &String| {
            [MultiOp::GetData { path: path.clone() }, MultiOp::GetChildren { path: path.clone() }]
        };
        let request = || Request::MultiRead(full.iter().flat_map(reads).collect());
        let (result, _) = client.call("children", first, &request, Idempotency::Idempotent).await?;
        match result {
            Ok(Response::Multi(results)) if results.len() == 2 * paths.len() => {
                let listed = paths.iter().zip(results.chunks_exact(2));
                return listed
                    .map(|(path, results)| {
                        listed_in(results).map_err(|code| Error::from_code(code, "children").at(path))
                    })
                    .collect();
            }
            Err(Code::UNIMPLEMENTED) => client.shared().learn_no_multi_reads(),
            Ok(_) => return Err(Error::from_code(Code::MARSHALLING_ERROR, "children").at(first)),
            Err(code) => return Err(Error::from_code(code, "children").at(first)),
        }
    }
    // Submitted in order.
    try_join_all(paths.iter().map(|path| present(client, path))).await
}

async fn present(client: &Client, path: &str) -> Result<Option<Children>, Error> {
    match client.children(path).await {
        Ok(children) => Ok(Some(children)),
        Err(error) if error.kind() == ErrorKind::NoNode => Ok(None),
        Err(error) => Err(error),
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
