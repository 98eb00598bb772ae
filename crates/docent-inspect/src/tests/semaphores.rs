use super::tree::{FIRST_MS, Tree};
use super::{ADDRESS, DOCENT, HEX, UUID};
use crate::{Contender, Kind, Recipe, Semaphore, Writer};
use docent_core::recipe::since_1970_ms;

fn semaphore(recipe: Recipe) -> Semaphore {
    match recipe {
        Recipe::Semaphore(semaphore) => semaphore,
        other => panic!("not a semaphore: {other:?}"),
    }
}

fn numbers(contenders: &[Contender]) -> Vec<i32> {
    contenders.iter().map(|one| one.number.unwrap()).collect()
}

fn lease(number: u32) -> String {
    format!("/s/leases/_c_{UUID}-lease-{number:010}")
}

#[test]
fn permits_beyond_the_limit_wait() {
    let tree = Tree::default()
        .node("/s", "2")
        .ephemeral(&lease(1), DOCENT)
        .ephemeral(&lease(2), DOCENT)
        .ephemeral(&lease(3), DOCENT)
        .ephemeral(&format!("/s/locks/_c_{UUID}-lock-0000000001"), DOCENT)
        .ephemeral(&format!("/s/locks/_c_{UUID}-lock-0000000002"), ADDRESS);
    let semaphore = semaphore(tree.report("/s").recipe);
    assert_eq!(semaphore.limit, Some(2));
    assert_eq!(numbers(&semaphore.permits), [1, 2]);
    assert!(semaphore.permits.iter().all(|one| one.holds));
    // The first turn is that of the third ticket.
    assert_eq!(numbers(&semaphore.waiters), [3, 2]);
    assert!(semaphore.waiters.iter().all(|one| !one.holds && one.held.is_none()));
    assert_eq!(since_1970_ms(semaphore.waiters[0].since.unwrap().at), FIRST_MS + 6_000);
}

#[test]
fn a_waiter_with_several_tickets_is_one() {
    let tree = Tree::default()
        .node("/s", "1")
        .ephemeral(&lease(1), DOCENT)
        .ephemeral(&format!("/s/locks/_c_{UUID}-lock-0000000001"), DOCENT)
        .ephemeral(&lease(2), DOCENT)
        .ephemeral(&lease(3), DOCENT);
    let semaphore = semaphore(tree.report("/s").recipe);
    assert_eq!((numbers(&semaphore.permits), numbers(&semaphore.waiters)), (vec![1], vec![2]));
}

#[test]
fn without_a_limit_the_ticket_of_the_turn_waits() {
    let turn = |number: u32| format!("/s/locks/_c_{UUID}-lock-{number:010}");
    let tree = Tree::default().ephemeral(&lease(1), ADDRESS).ephemeral(&turn(1), ADDRESS);
    let before = semaphore(tree.report("/s").recipe);
    assert_eq!((numbers(&before.permits), numbers(&before.waiters)), (vec![1], vec![1]));
    let tree = Tree::default()
        .ephemeral(&lease(1), ADDRESS)
        .ephemeral(&turn(1), ADDRESS)
        .ephemeral(&lease(2), ADDRESS)
        .ephemeral(&turn(3), ADDRESS);
    let after = semaphore(tree.report("/s").recipe);
    assert_eq!((numbers(&after.permits), numbers(&after.waiters)), (vec![1], vec![2, 3]));
}

#[test]
fn curators_semaphore_keeps_no_limit() {
    let tree =
        Tree::default().ephemeral(&lease(1), ADDRESS).ephemeral(&lease(2), ADDRESS).node("/s/locks", "");
    let report = tree.report("/s");
    assert_eq!(report.writers, [Writer::Curator]);
    let semaphore = semaphore(report.recipe);
    assert_eq!((semaphore.limit, semaphore.permits.iter().all(|one| one.holds)), (None, true));
    let folder = self::semaphore(tree.report("/s/leases").recipe);
    assert_eq!(folder.permits.len(), 2);
}

#[test]
fn kazoos_semaphore_has_its_waiters_in_a_sibling_folder() {
    let tree = Tree::default()
        .node("/s", "1")
        .ephemeral(&format!("/s/{HEX}"), "worker-1")
        .ephemeral(&format!("/s-__lock__/{HEX}__lock__0000000000"), "b'0'");
    let report = tree.report("/s");
    assert_eq!(report.writers, [Writer::Kazoo]);
    let semaphore = semaphore(report.recipe);
    assert_eq!((semaphore.limit, semaphore.permits.len(), semaphore.waiters.len()), (Some(1), 1, 1));
    assert!(semaphore.permits[0].holds && !semaphore.waiters[0].holds);
    assert_eq!(semaphore.permits[0].identity.as_ref().unwrap().as_str(), Some("worker-1"));
    let turns = tree.report("/s-__lock__");
    assert_eq!((turns.kind(), turns.part_of.as_deref()), (Kind::Mutex, Some("/s")));
    // A folder of that name beside another node is an independent mutex.
    let alone = Tree::default()
        .node("/s", "no limit")
        .ephemeral(&format!("/s-__lock__/{HEX}__lock__0000000000"), "b'0'");
    assert_eq!(alone.report("/s-__lock__").part_of, None);
}

#[test]
fn folders_of_these_names_alone_are_no_semaphore() {
    let tree = Tree::default()
        .node("/app/locks/report", "")
        .ephemeral(&format!("/one/locks/_c_{UUID}-lock-0000000001"), ADDRESS)
        .node("/other/leases/cars", "");
    for path in ["/app", "/one", "/other"] {
        assert_eq!(tree.report(path).kind(), Kind::Plain, "{path}");
    }
    assert_eq!(tree.report("/one/locks").kind(), Kind::Mutex);
}
