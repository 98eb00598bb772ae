use crate::analysis::Analysis;
use crate::violation::{Found, Invariant, Violation};
use crate::watched_link::WatchedLink;
use crate::watcher::WatcherLink;
use docent_proto::{Code, Request, Response};
use std::collections::BTreeSet;

/// **Replies about nodes, sessions and watches** match the journal at the transaction that the reply names.
///
/// - This applies to the number of descendants of a node, a session's ephemeral nodes, and whether a node
///   exists.
/// - Checks and removals of watches find the link's own watches. A check also finds the watches of the
///   client's earlier sessions until these end.
/// - `whoAmI` returns the client's address and the credentials that it authenticated with.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let links = &analysis.facts().watchers;
    for (place, link) in links.iter().enumerate() {
        let earlier = links[..place].iter().filter(|earlier| earlier.folder == link.folder);
        let earlier: BTreeSet<i64> = earlier.map(|earlier| earlier.session).collect();
        let judge = |followed: &WatchedLink<'_>, request: &Request, result: &Result<Response, Code>| {
            wrong(followed, link, &earlier, request, result).map(|due| {
                format!("session {:#x}: {request:?} was answered {result:?}, not {due}", link.session)
            })
        };
        let mut first = None;
        WatchedLink::follow(link, &analysis.run.journal, |followed, request, result| {
            first = first.take().or_else(|| judge(followed, request, result));
            // Ends the walk, and distinguishes wrong replies from wrong events.
            first.as_ref().map(|_| String::new())
        })
        .and_then(|(at, _)| Some((at, first?)))
        .into_iter()
        .for_each(|(at, what)| found.push(Violation::new(Invariant::W2, at, what)));
    }
}

/// The expected reply, if the reply is wrong.
fn wrong(
    followed: &WatchedLink<'_>,
    link: &WatcherLink,
    earlier: &BTreeSet<i64>,
    request: &Request,
    result: &Result<Response, Code>,
) -> Option<String> {
    let tree = &followed.tree;
    match request {
        Request::Exists { path, .. } | Request::GetData { path, .. } | Request::GetChildren { path, .. } => {
            (tree.has(path) != result.is_ok()).then(|| format!("that it exists: {}", tree.has(path)))
        }
        Request::GetAllChildrenNumber { path } => {
            let due = match tree.has(path) {
                true => Ok(Response::Count(i32::try_from(tree.count_below(path)).unwrap_or(i32::MAX))),
                false => Err(Code::NO_NODE),
            };
            (due != *result).then(|| format!("{due:?}"))
        }
        Request::GetEphemerals { prefix } => {
            let due = tree.ephemerals(followed.session, prefix);
            let Ok(Response::Ephemerals(paths)) = result else { return Some("a list".to_owned()) };
            let mut paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            paths.sort_unstable();
            (due != paths).then(|| format!("{due:?}"))
        }
        Request::CheckWatches { path, kind } => {
            let has_ended = |session: &i64| *session == link.session || followed.ended.contains(session);
            let is_alone = is_below(path, &link.folder) && earlier.iter().all(has_ended);
            checked(followed.watches.has(path, *kind), is_alone, result)
        }
        Request::RemoveWatches { path, kind } => checked(followed.watches.has(path, *kind), true, result),
        Request::WhoAmI => wrong_names(&followed.proved, result),
        _ => None,
    }
}

/// Checks the reply to a check or a removal of a watch. If other sessions may watch the node, a check also
/// finds their watches.
fn checked(has: bool, is_alone: bool, result: &Result<Response, Code>) -> Option<String> {
    match (has, result) {
        (true, Err(_)) => Some("that there is a watch".to_owned()),
        (false, Ok(_)) if is_alone => Some("that there is no watch".to_owned()),
        (false, Err(code)) if *code != Code::NO_WATCHER => Some(format!("{:?}", Code::NO_WATCHER)),
        _ => None,
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A client is identified by its address and by the names that it authenticated on this link.
fn wrong_names(proved: &BTreeSet<String>, result: &Result<Response, Code>) -> Option<String> {
    let Ok(Response::Clients(clients)) = result else { return Some("a list".to_owned()) };
    let (addresses, others): (Vec<_>, Vec<_>) = clients.iter().partition(|client| client.scheme == "ip");
    let names: BTreeSet<String> = others.into_iter().map(|client| client.user.clone()).collect();
    (addresses.len() != 1 || names != *proved).then(|| format!("an address and {proved:?}"))
}

#[cfg(test)]
mod tests {
    use crate::check::watch_events::tests::{created, ended, link, reply, run};
    use crate::journal::Change;
    use crate::violation::Invariant::W2;
    use crate::watcher::WatcherLink;
    use docent_proto::{ClientInfo, Code, Request, Response, WatchKind, WatchMode};

    fn broken(request: Request, result: Result<Response, Code>) -> bool {
        let watch = Request::AddWatch { path: "/own".into(), mode: WatchMode::Persistent };
        let received = vec![reply(3, watch, Ok(Response::WatchAdded(Code::OK))), reply(3, request, result)];
        let journal = [created(1, "/a", 0), created(2, "/a/b", 7), created(3, "/a/b/c", 8), ended(9)];
        let run = run(&journal, link(received));
        match crate::check(&run).as_slice() {
            [] => false,
            [violation] => violation.invariant == W2,
            more => panic!("{more:?}"),
        }
    }

    #[test]
    fn nodes_below_a_node_are_counted_as_of_the_reply() {
        let count = |path: &str| Request::GetAllChildrenNumber { path: path.into() };
        assert!(!broken(count("/a"), Ok(Response::Count(2))));
        assert!(broken(count("/a"), Ok(Response::Count(1))));
        assert!(!broken(count("/"), Ok(Response::Count(6))));
        assert!(!broken(count("/none"), Err(Code::NO_NODE)));
        assert!(broken(count("/a/b"), Err(Code::NO_NODE)));
    }

    #[test]
    fn ephemeral_nodes_are_those_of_the_session() {
        let own = Request::GetEphemerals { prefix: "/a".into() };
        assert!(!broken(own.clone(), Ok(Response::Ephemerals(vec!["/a/b".into()]))));
        assert!(broken(own.clone(), Ok(Response::Ephemerals(vec!["/a/b".into(), "/a/b/c".into()]))));
        assert!(broken(own, Ok(Response::Ephemerals(Vec::new()))));
    }

    #[test]
    fn watches_are_found_on_their_nodes() {
        let check = |path: &str| Request::CheckWatches { path: path.into(), kind: WatchKind::Data };
        assert!(!broken(check("/own"), Ok(Response::Empty)));
        assert!(broken(check("/own"), Err(Code::NO_WATCHER)));
        assert!(broken(check("/own/not"), Ok(Response::Empty)));
        assert!(!broken(check("/others"), Ok(Response::Empty)), "other clients may watch there");
        let remove = Request::RemoveWatches { path: "/others".into(), kind: WatchKind::Any };
        assert!(broken(remove, Ok(Response::Empty)));
    }

    #[test]
    fn a_watch_of_an_earlier_session_is_found_until_that_ends() {
        const EARLIER: i64 = 90;
        let found_after = |journal: &[Change]| {
            let check = Request::CheckWatches { path: "/own/not".into(), kind: WatchKind::Data };
            let mut run = run(journal, link(vec![reply(3, check, Ok(Response::Empty))]));
            run.facts.watchers.insert(0, WatcherLink { session: EARLIER, ..link(Vec::new()) });
            crate::check(&run)
        };
        let end = |zxid| Change { session: EARLIER, ..ended(zxid) };
        assert_eq!(found_after(&[created(3, "/a", 0), end(4)]), []);
        assert_eq!(found_after(&[end(2), created(3, "/a", 0)])[0].invariant, W2);
    }

    #[test]
    fn a_client_is_known_by_its_address_until_it_authenticates() {
        let client = |scheme: &str| ClientInfo { scheme: scheme.into(), user: "x".into() };
        assert!(!broken(Request::WhoAmI, Ok(Response::Clients(vec![client("ip")]))));
        assert!(broken(Request::WhoAmI, Ok(Response::Clients(vec![client("ip"), client("digest")]))));
    }
}
