use super::tree::{SESSION, Tree};
use super::{DOCENT, HEX, UUID};
use crate::report::{Ephemeral, ServerTime, TimeSource};
use crate::{Kind, LeftOut, SessionReport, StakeRole, Survey};
use std::time::{Duration, SystemTime};

/// Returns the sessions of a survey with reports on `recipes` and ephemeral nodes at `nodes`, each with its
/// session.
fn sessions(tree: &Tree, recipes: &[&str], nodes: &[(&str, i64)]) -> Vec<SessionReport> {
    let clock =
        ServerTime { now: SystemTime::UNIX_EPOCH + Duration::from_secs(9), source: TimeSource::OwnNode };
    let since = clock.since(SystemTime::UNIX_EPOCH);
    let ephemeral =
        |(path, session): &(&str, i64)| Ephemeral { path: (*path).to_owned(), session: *session, since };
    let survey = Survey {
        root: "/".to_owned(),
        found: recipes.iter().map(|path| tree.report(path)).collect(),
        ephemerals: nodes.iter().map(ephemeral).collect(),
        nodes: 0,
        refused: Vec::new(),
        left_out: LeftOut::default(),
        as_of_zxid: 0,
        clock: Some(clock),
    };
    survey.sessions()
}

#[test]
fn the_nodes_of_a_session_show_what_ends_with_it() {
    let (lock, waiter) = (format!("/m/_c_{UUID}-lock-0000000001"), format!("/m/_c_{HEX}-lock-0000000002"));
    let instance = r#"{"name":"s","id":"i","address":"10.0.0.7","port":80}"#;
    let tree = Tree::default().ephemeral(&lock, DOCENT).ephemeral(&waiter, "").ephemeral("/r/s/i", instance);
    let all = [(&*lock, SESSION), (&*waiter, SESSION), ("/other", SESSION), ("/r/s/i", SESSION), ("/z", -1)];
    let found = sessions(&tree, &["/m", "/r/s"], &all);
    assert_eq!(found.iter().map(|one| one.session).collect::<Vec<_>>(), [-1, SESSION]);
    let (other, session) = (&found[0], &found[1]);
    assert_eq!(
        (other.owner(), other.nodes[0].role),
        ("session 0xffffffffffffffff".to_owned(), StakeRole::Owns)
    );
    assert_eq!((session.owner(), session.client.as_ref().unwrap().pid()), (DOCENT.to_owned(), 12));
    let roles: Vec<_> =
        session.nodes.iter().map(|node| (node.role, node.kind, node.recipe.as_deref())).collect();
    assert_eq!(
        roles,
        [
            (StakeRole::Holds, Some(Kind::Mutex), Some("/m")),
            (StakeRole::Waits, Some(Kind::Mutex), Some("/m")),
            (StakeRole::Owns, None, None),
            (StakeRole::Registers, Some(Kind::Service), Some("/r/s")),
        ]
    );
    assert_eq!(session.nodes[1].waits_for.as_deref(), lock.strip_prefix("/m/"));
}

#[test]
fn a_second_node_of_a_waiter_does_not_look_like_a_hold() {
    let ticket = format!("/s/leases/_c_{UUID}-lease-0000000001");
    let (turn, second) =
        (format!("/s/locks/_c_{HEX}-lock-0000000001"), format!("/s/leases/_c_{HEX}-lease-0000000002"));
    let tree = Tree::default()
        .node("/s", "1")
        .ephemeral(&ticket, DOCENT)
        .ephemeral(&turn, "")
        .ephemeral(&second, "");
    let found = sessions(&tree, &["/s"], &[(&ticket, SESSION)]);
    assert_eq!(found[0].nodes[0].role, StakeRole::Holds, "{:?}", tree.report("/s"));
}

#[test]
fn the_form_of_a_session_is_stable() {
    let lock = format!("/m/_c_{UUID}-lock-0000000001");
    let tree = Tree::default().ephemeral(&lock, "");
    let found = sessions(&tree, &["/m"], &[(&lock, SESSION)]);
    let expected = serde_json::json!({
        "session": "0x10000a3f",
        "identity": null,
        "client": null,
        "nodes": [{
            "path": lock,
            "recipe": "/m",
            "kind": "mutex",
            "role": "holds",
            "waits_for": null,
            "since_ms": 0,
            "age_ms": 9_000,
        }],
    });
    assert_eq!(serde_json::to_value(&found[0]).unwrap(), expected);
}

#[test]
fn a_root_that_is_a_recipe_has_sessions_as_well() {
    let tree = Tree::default().ephemeral(&format!("/_c_{UUID}-lock-0000000001"), DOCENT);
    let found = sessions(&tree, &["/"], &[(&format!("/_c_{UUID}-lock-0000000001"), SESSION)]);
    assert_eq!(found[0].nodes[0].recipe.as_deref(), Some("/"));
}
