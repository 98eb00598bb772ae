use super::UUID;
use super::tree::Tree;
use crate::{Kind, Recipe, printable};

/// Data that anybody may have written.
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
const NAMES: [&str; 22] = [
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
    let Recipe::Membership(group) = tree.report("/g").recipe else { panic!("no group") };
    assert_eq!(group.members[0].name, name);
    assert!(!printable(&group.members[0].name).chars().any(char::is_control));
    assert_eq!(group.members[0].data.as_ref().unwrap().to_string(), "\\x1b[2J\\xff");
}

#[test]
fn a_folder_without_children_or_a_line_that_was_left_is_plain() {
    let tree = Tree::default().node("/m", "").node("/s/leases", "").node("/s/locks", "");
    assert_eq!(tree.report("/m").kind(), Kind::Plain);
    assert_eq!(tree.report("/s").kind(), Kind::Plain);
    assert_eq!(tree.report("/").kind(), Kind::Absent);
}
