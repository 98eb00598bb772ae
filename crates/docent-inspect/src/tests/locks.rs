use super::tree::{FIRST_MS, SESSION, Tree};
use super::{ADDRESS, DOCENT, HEX, UUID};
use crate::{Contender, Kind, Line, Recipe, Writer};
use docent_core::Role;
use docent_core::recipe::since_1970_ms;
use std::time::Duration;

fn line(recipe: Recipe) -> Line {
    match recipe {
        Recipe::Mutex(line) | Recipe::ReadWriteLock(line) => line,
        other => panic!("not a lock: {other:?}"),
    }
}

/// Returns each contender by its number, whether it holds, and the number of the contender it waits for.
fn order(line: &Line) -> Vec<(i32, bool, Option<i32>)> {
    let number = |name: &String| name[name.len() - 10..].parse().unwrap();
    let of = |one: &Contender| (one.number.unwrap(), one.holds, one.waits_for.as_ref().map(number));
    line.contenders.iter().map(of).collect()
}

#[test]
fn a_mutex_reports_its_holder_and_the_predecessor_of_each_waiter() {
    let tree = Tree::default()
        .ephemeral(&format!("/m/_c_{UUID}-lock-0000000009"), ADDRESS)
        .changed(&format!("/m/_c_{UUID}-lock-0000000004"), DOCENT, 2_000)
        .ephemeral(&format!("/m/_c_{HEX}-lock-0000000007"), "");
    let report = tree.report("/m");
    assert_eq!(report.kind(), Kind::Mutex);
    assert_eq!(report.may_be, [Kind::Election]);
    assert_eq!(report.writers, [Writer::Docent, Writer::Curator, Writer::GoZookeeper]);
    let line = line(report.recipe);
    assert_eq!(order(&line), [(4, true, None), (7, false, Some(4)), (9, false, Some(7))]);
    let holder = line.holders().next().unwrap();
    assert_eq!((holder.session, holder.fence.unwrap().as_u64()), (Some(SESSION), 3));
    let client = holder.client.as_ref().unwrap();
    assert_eq!((client.host(), client.pid(), client.label()), ("web-1", 12, Some("nightly import")));
    let since = holder.since.unwrap();
    assert_eq!(since_1970_ms(since.at), FIRST_MS + 2_000);
    assert_eq!(since.age, Duration::from_millis(3_600_000 - 2_000));
    assert_eq!(since_1970_ms(holder.held.unwrap().at), FIRST_MS + 4_000);
    assert_eq!(line.waiters().count(), 2);
}

#[test]
fn kazoos_lock_is_a_mutex_by_its_identifier() {
    let tree = Tree::default()
        .ephemeral(&format!("/m/{HEX}__lock__0000000002"), "worker-2")
        .ephemeral(&format!("/m/{HEX}__lock__0000000001"), "");
    let report = tree.report("/m");
    assert_eq!((report.kind(), &report.writers[..]), (Kind::Mutex, &[Writer::Kazoo][..]));
    let line = line(report.recipe);
    assert_eq!(order(&line), [(1, true, None), (2, false, Some(1))]);
    assert_eq!(line.contenders[1].identity.as_ref().unwrap().as_str(), Some("worker-2"));
    assert_eq!(line.contenders[0].identity, None);
}

#[test]
fn lines_of_two_libraries_at_one_path_are_independent() {
    let tree = Tree::default()
        .ephemeral(&format!("/m/{HEX}__lock__0000000000"), "")
        .ephemeral(&format!("/m/_c_{UUID}-lock-0000000001"), ADDRESS);
    let line = line(tree.report("/m").recipe);
    assert_eq!(order(&line), [(0, true, None), (1, true, None)]);
}

#[test]
fn a_revoked_contender_is_marked_and_has_no_identity() {
    let tree = Tree::default().changed(&format!("/m/_c_{UUID}-lock-0000000001"), "__REVOKE__", 5);
    let report = tree.report("/m");
    assert_eq!(serde_json::to_value(&report.writers).unwrap(), serde_json::json!(["docent_or_curator"]));
    let line = line(report.recipe);
    let holder = &line.contenders[0];
    assert!(holder.is_revoked && holder.holds);
    assert_eq!((&holder.identity, &holder.held), (&None, &None));
}

#[test]
fn readers_wait_for_writers_and_a_writer_for_every_predecessor() {
    let node = |side: &str, number: u32| format!("/rw/_c_{UUID}-__{side}__{number:010}");
    let tree = Tree::default()
        .ephemeral(&node("READ", 1), DOCENT)
        .ephemeral(&node("READ", 2), ADDRESS)
        .ephemeral(&node("WRIT", 3), ADDRESS)
        .ephemeral(&node("READ", 4), ADDRESS)
        .ephemeral(&node("WRIT", 5), ADDRESS);
    let report = tree.report("/rw");
    assert_eq!(report.kind(), Kind::ReadWriteLock);
    let line = line(report.recipe);
    let expected =
        [(1, true, None), (2, true, None), (3, false, Some(2)), (4, false, Some(3)), (5, false, Some(4))];
    assert_eq!(order(&line), expected);
    let roles: Vec<_> = line.contenders.iter().map(|one| one.role == Role::Exclusive).collect();
    assert_eq!(roles, [false, false, true, false, true]);
}

#[test]
fn a_writer_that_steps_down_is_ahead_of_the_reader_it_becomes() {
    let node = |side: &str| format!("/rw/_c_{UUID}-__{side}__0000000003");
    let tree = Tree::default().ephemeral(&node("READ"), DOCENT).ephemeral(&node("WRIT"), DOCENT);
    let line = line(tree.report("/rw").recipe);
    assert_eq!(order(&line), [(3, true, None), (3, false, Some(3))]);
    assert_eq!(line.contenders[0].role, Role::Exclusive);
}

#[test]
fn kazoos_readers_and_writers_are_one_line() {
    let tree = Tree::default()
        .ephemeral(&format!("/rw/{HEX}__rlock__0000000001"), "a")
        .ephemeral(&format!("/rw/{HEX}__lock__0000000002"), "b")
        .ephemeral(&format!("/rw/{HEX}__rlock__0000000003"), "c");
    let report = tree.report("/rw");
    assert_eq!(report.kind(), Kind::ReadWriteLock);
    let expected = [(1, true, None), (2, false, Some(1)), (3, false, Some(2))];
    assert_eq!(order(&line(report.recipe)), expected);
}

#[test]
fn after_the_sequence_number_overflows_the_order_is_that_of_creation() {
    let tree = Tree::default()
        .ephemeral(&format!("/m/_c_{UUID}-lock-2147483647"), ADDRESS)
        .ephemeral(&format!("/m/_c_{UUID}-lock--2147483648"), ADDRESS)
        .ephemeral(&format!("/m/_c_{UUID}-lock--2147483647"), ADDRESS);
    let numbers: Vec<_> =
        line(tree.report("/m").recipe).contenders.iter().map(|one| one.number.unwrap()).collect();
    assert_eq!(numbers, [i32::MAX, i32::MIN, i32::MIN + 1]);
}

#[test]
fn a_contender_that_may_not_be_read_keeps_its_place() {
    let node = |number: u32| format!("/m/_c_{UUID}-lock-{number:010}");
    let tree = Tree::default().ephemeral(&node(1), DOCENT).ephemeral(&node(2), DOCENT).refuse(&node(1));
    let report = tree.report("/m");
    assert_eq!(report.refused.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), [node(1)]);
    let line = line(report.recipe);
    assert_eq!(order(&line), [(1, true, None), (2, false, Some(1))]);
    let unread = &line.contenders[0];
    assert_eq!((unread.session, unread.fence, unread.since), (None, None, None));
    assert!(line.contenders[1].client.is_some());
}
