use super::tree::{Tree, refused_children};
use super::{HEX, UUID};
use crate::{Kind, Recipe, printable};
use std::time::{Duration, Instant};

/// Data that any program may have written.
const FOREIGN: [&[u8]; 8] = [
    b"",
    b"\x00",
    b"\xff\xfe\xfd",
    b"\x1b]0;owned\x07",
    b"{\"name\":",
    b"{\"version\": 1, \"holder\": 7}",
    b"docent-term:",
    b"web-1 (pid ",
];

/// Names that look like those of recipes.
const NAMES: [&str; 23] = [
    "lock-",
    "lock-0000000001",
    "_c_-lock-0000000001",
    "_c_é-lock-0000000001",
    "latch-0000000001",
    "__READ__0000000001",
    "__WRIT__-000000001",
    "lease-0000000001",
    "leases",
    "locks",
    "items",
    "idle",
    "entries",
    "party",
    "_history",
    "_running",
    "lease_holder",
    "ready",
    "providers",
    "queue-",
    "queue-|",
    "queue-||0000000001",
    "entry-é00-0000000001",
];

#[test]
fn foreign_data_under_names_of_recipes_breaks_nothing() {
    for data in FOREIGN {
        for name in NAMES {
            for below in ["", "/lock-0000000001", "/\u{1b}[2J", "/item-0000000001"] {
                let tree = Tree::default().node(&format!("/x/{name}{below}"), data);
                let json = serde_json::to_string(&tree.report("/x")).unwrap();
                assert!(json.contains("\"kind\":\""), "{json}");
                let all = NAMES.iter().fold(tree, |tree, other| tree.node(&format!("/x/{other}"), data));
                serde_json::to_string(&all.report("/x")).unwrap();
            }
        }
    }
}

#[test]
fn a_prefix_of_any_name_breaks_nothing() {
    let whole = format!("_c_{UUID}-__READ__0000000001");
    for length in 1..=whole.len() {
        let tree = Tree::default().ephemeral(&format!("/x/{}", &whole[..length]), "");
        let expected = if length == whole.len() { Kind::ReadWriteLock } else { Kind::Membership };
        assert_eq!(tree.report("/x").kind(), expected, "{}", &whole[..length]);
    }
}

#[test]
fn names_and_data_are_kept_as_stored_and_printed_without_control_characters() {
    let name = format!("\u{1b}[31m{}", "ä".repeat(10_000));
    let tree = Tree::default().ephemeral(&format!("/g/{name}"), b"\x1b[2J\xff");
    let Recipe::Membership(group) = tree.report("/g").recipe else { panic!("the recipe must be a group") };
    assert_eq!(group.members[0].name, name);
    assert!(!printable(&group.members[0].name).chars().any(char::is_control));
    assert_eq!(group.members[0].data.as_ref().unwrap().to_string(), "\\x1b[2J\\xff");
}

#[test]
fn a_folder_without_children_or_contenders_is_plain() {
    let tree = Tree::default().node("/m", "").node("/s/leases", "").node("/s/locks", "");
    assert_eq!(tree.report("/m").kind(), Kind::Plain);
    assert_eq!(tree.report("/s").kind(), Kind::Plain);
    assert_eq!(tree.report("/").kind(), Kind::Absent);
}

#[test]
fn folders_of_applications_are_no_recipes() {
    for paths in [
        &["/app/ready"][..],
        &["/app/entries/first-post", "/app/entries/second-post"],
        &["/app/entries"],
        &["/app/providers/alice", "/app/providers/bob"],
        &["/app/providers"],
        &["/app/party"],
        &["/app/items/cup", "/app/idle/hands"],
        &["/app/_history/monday"],
        &["/app/_running/job-1"],
        &["/app/a", "/app/b", "/app/c", "/app/d", "/app/e"],
    ] {
        let tree =
            paths.iter().fold(Tree::default(), |tree, path| tree.node(path, r#"{"name":"cup","id":"7"}"#));
        assert_eq!(tree.report("/app").kind(), Kind::Plain, "{paths:?}");
    }
}

#[test]
fn a_folder_with_a_persistent_child_is_no_group_even_outside_the_sample() {
    let group = ["a", "b", "c", "d", "e"]
        .iter()
        .fold(Tree::default(), |tree, name| tree.ephemeral(&format!("/g/{name}"), ""));
    assert_eq!(group.report("/g").kind(), Kind::Membership);
    assert_eq!(group.node("/g/f", "").report("/g").kind(), Kind::Plain);
}

#[test]
fn an_unreadable_or_deleted_child_does_not_change_the_kind() {
    let group = || Tree::default().ephemeral("/g/a", "").ephemeral("/g/b", "");
    let barrier = || Tree::default().ephemeral(&format!("/g/{UUID}"), "").ephemeral(&format!("/g/{HEX}"), "");
    for tree in [group().refuse("/g/a"), group().leave("/g/a")] {
        assert_eq!(tree.report("/g").kind(), Kind::Membership);
    }
    for tree in [barrier().refuse(&format!("/g/{UUID}")), barrier().leave(&format!("/g/{UUID}"))] {
        assert_eq!(tree.report("/g").kind(), Kind::DoubleBarrier);
    }
    let Recipe::Membership(members) = group().leave("/g/a").report("/g").recipe else {
        panic!("the recipe must be a group")
    };
    assert_eq!(members.members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_member_that_was_deleted_meanwhile_shares_no_items() {
    let (left, stays) = (format!("{HEX}-host"), format!("{}-host", HEX.replace('8', "9")));
    let party = |name: &str| format!("/shards/party/{name}");
    let tree = Tree::default().node("/shards/locks", "");
    let tree = tree.ephemeral(&party(&left), "").ephemeral(&party(&stays), "").leave(&party(&left));
    let Recipe::Partition(partition) = tree.report("/shards").recipe else {
        panic!("the recipe must be a partition")
    };
    assert_eq!(partition.members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), [stays]);
}

#[test]
fn a_contender_that_was_deleted_meanwhile_holds_nothing() {
    let node = |number: u32| format!("/m/_c_{UUID}-lock-{number:010}");
    let tree = Tree::default().ephemeral(&node(1), "").ephemeral(&node(2), "").leave(&node(1));
    let Recipe::Mutex(line) = tree.report("/m").recipe else { panic!("the recipe must be a mutex") };
    assert_eq!(
        (line.contenders.len(), line.contenders[0].number, line.contenders[0].holds),
        (1, Some(2), true)
    );
    let alone = Tree::default().ephemeral(&node(1), "").leave(&node(1));
    assert_eq!(alone.report("/m").kind(), Kind::Plain);
}

#[test]
fn a_registry_is_one_while_a_service_has_no_instance() {
    let json = r#"{"name":"orders","id":"1"}"#;
    let tree = Tree::default().node("/services/idle", "").ephemeral("/services/orders/1", json);
    assert_eq!(tree.report("/services").kind(), Kind::Registry);
    assert_eq!(tree.node("/services/limit", "7").report("/services").kind(), Kind::Plain);
}

#[test]
fn a_long_line_of_readers_takes_no_time_that_grows_with_its_square() {
    let names = (0..50_000).map(|number| format!("_c_{UUID}-__READ__{number:010}")).collect();
    let begin = Instant::now();
    let report = refused_children("/rw", names);
    let Recipe::ReadWriteLock(line) = report.recipe else { panic!("the recipe must be a lock") };
    assert_eq!(line.holders().count(), 50_000);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}
