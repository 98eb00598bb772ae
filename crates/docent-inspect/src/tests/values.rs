use super::tree::Tree;
use super::{ADDRESS, DOCENT, HEX};
use crate::{Kind, NumberFormat, Recipe, StakeRole, Writer};

fn counter(data: &[u8]) -> Option<(String, NumberFormat)> {
    match Tree::default().node("/n", data).report("/n").recipe {
        Recipe::Counter(counter) => Some((counter.number, counter.format)),
        _ => None,
    }
}

#[test]
fn numbers_are_read_in_the_formats_of_all_three() {
    for (data, number, format) in [
        (&b"\x00\x00\x01\x02"[..], "258", NumberFormat::I32),
        (b"\xff\xff\xff\xff", "-1", NumberFormat::I32),
        (b"\x00\x00\x00\x00\x00\x00\x01\x2d", "301", NumberFormat::I64),
        (b"4", "4", NumberFormat::Text),
        (b"3.0", "3.0", NumberFormat::Text),
    ] {
        assert_eq!(counter(data), Some((number.to_owned(), format)), "{data:?}");
    }
    for text in [&b"true"[..], b"db-host1", b"\x00\x01\x02", b"nan", b"inf", b"4 apples"] {
        assert_eq!(counter(text), None, "{text:?}");
    }
}

#[test]
fn data_alone_may_be_a_value_or_a_barrier() {
    let kind = |data: &str| Tree::default().node("/v", data).report("/v").kind();
    assert_eq!(kind(r#"{"per_second":100}"#), Kind::Value);
    assert_eq!(kind(DOCENT), Kind::Barrier);
    assert_eq!(kind(ADDRESS), Kind::Barrier);
    assert_eq!(kind(""), Kind::Plain);
    let large = Tree::default().node("/v", vec![b'7'; 100_000]).report("/v");
    let Recipe::Value(value) = large.recipe else { panic!("the recipe must be a value") };
    assert_eq!((value.size, &large.may_be[..]), (100_000, &[Kind::Config][..]));
}

#[test]
fn a_configuration_lists_its_history_latest_first() {
    let tree = Tree::default()
        .node("/c", "three")
        .node("/c/_history/0000000000000007-0000000000000001-0-1700000000123", "one")
        .node("/c/_history/0000000000000009-0000000000000001-1-1700000000456", "two")
        .node("/c/_history/foreign", "");
    let report = tree.report("/c");
    assert_eq!(report.writers, [Writer::Docent]);
    let Recipe::Config(config) = report.recipe else { panic!("the recipe must be a configuration") };
    let history: Vec<_> = config.history.iter().map(|it| (it.mzxid, it.version)).collect();
    assert_eq!((config.size, &history[..]), (5, &[(9, 1), (7, 0)][..]));
}

/// Data of the node of a reader.
fn applied(mzxid: i64, version: i32) -> String {
    format!(r#"{{"mzxid":{mzxid},"czxid":1,"version":{version}}}"#)
}

fn readers(tree: &Tree) -> Vec<(String, Option<i32>, Option<bool>)> {
    let Recipe::Config(config) = tree.report("/c").recipe else {
        panic!("the recipe must be a configuration")
    };
    config.readers.into_iter().map(|reader| (reader.id, reader.version, reader.is_current)).collect()
}

#[test]
fn a_configuration_lists_the_readers_that_report() {
    let tree = Tree::default().node("/c", "three");
    let current = tree.report("/c").as_of_zxid;
    let tree = tree
        .ephemeral("/c/_running/web-1", applied(current, 2))
        .ephemeral("/c/_running/web-2", applied(current - 1, 1));
    let report = tree.report("/c");
    assert_eq!(report.writers, [Writer::Docent]);
    assert_eq!(
        readers(&tree),
        [("web-1".to_owned(), Some(2), Some(true)), ("web-2".to_owned(), Some(1), Some(false))]
    );
    let stakes = report.stakes();
    assert_eq!(
        (stakes[0].role, stakes[0].name, stakes[0].role.is_owner()),
        (StakeRole::Runs, "web-1", false)
    );
    assert!(stakes[0].session.is_some());
}

#[test]
fn a_reader_that_cannot_be_read_spoils_no_report() {
    let web_1 = "/c/_running/web-1";
    let tree = || {
        Tree::default()
            .node("/c", "three")
            .ephemeral(web_1, applied(1, 0))
            .ephemeral("/c/_running/web-2", applied(1, 0))
    };
    let unknown = ("web-1".to_owned(), None, None);
    assert_eq!(readers(&tree().refuse(web_1))[0], unknown);
    assert_eq!(readers(&tree().leave(web_1)).len(), 1);
    let foreign = tree().ephemeral("/c/_running/a", b"\xff").node("/c/_running/b", applied(1, 0));
    let ids: Vec<_> = readers(&foreign).into_iter().map(|(id, version, _)| (id, version)).collect();
    let expected = [("a", None), ("web-1", Some(0)), ("web-2", Some(0))];
    assert_eq!(ids, expected.map(|(id, version)| (id.to_owned(), version)));
    let other = Tree::default().node("/c/_running/job-1", "").node("/c/_history", "");
    assert_eq!(readers(&other), []);
}

#[test]
fn a_lease_reports_its_holder_and_end() {
    let lease = |data: &str| {
        let tree = Tree::default()
            .node("/l/lease_holder", data)
            .ephemeral(&format!("/l/{HEX}__lock__0000000001"), "");
        match tree.report("/l").recipe {
            Recipe::TimedLease(lease) => lease,
            other => panic!("not a lease: {other:?}"),
        }
    };
    let held = lease(r#"{"version": 1, "holder": "me", "end": "2026-11-21T04:52:16"}"#);
    assert_eq!((held.holder.as_deref(), held.is_over), (Some("me"), Some(false)));
    let expired = lease(r#"{"version": 1, "holder": "me", "end": "1970-01-01T00:00:16"}"#);
    assert_eq!(expired.is_over, Some(true));
    assert_eq!(lease("junk").holder, None);
}

#[test]
fn absent_and_unreadable_nodes_are_reported() {
    let tree = Tree::default().node("/secret", "x").refuse("/secret");
    let report = tree.report("/secret");
    assert_eq!((report.kind(), report.refused.len()), (Kind::Unreadable, 1));
    let absent = tree.report("/nothing");
    assert_eq!((absent.kind(), absent.as_of_zxid), (Kind::Absent, 0));
}
