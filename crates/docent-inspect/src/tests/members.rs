use super::tree::{SESSION, Tree};
use super::{ADDRESS, DOCENT, HEX, UUID};
use crate::{Kind, Recipe, Writer};

#[test]
fn ephemeral_children_are_the_members_of_a_group() {
    let tree = Tree::default().ephemeral("/g/web-2", ADDRESS).ephemeral("/g/web-1", DOCENT);
    let report = tree.report("/g");
    assert_eq!(report.writers, [Writer::Docent, Writer::Curator]);
    let Recipe::Membership(group) = report.recipe else { panic!("the recipe must be a group") };
    let members: Vec<_> = group.members.iter().map(|it| (it.id.as_str(), it.session)).collect();
    assert_eq!(members, [("web-1", Some(SESSION)), ("web-2", Some(SESSION))]);
    assert_eq!(group.members[1].data.as_ref().unwrap().as_str(), Some(ADDRESS));
}

#[test]
fn kazoos_parties_are_groups() {
    let party = Tree::default().ephemeral(&format!("/g/{HEX}__party__"), "worker");
    let shallow = Tree::default().ephemeral(&format!("/g/{HEX}-worker"), "worker");
    for tree in [party, shallow] {
        let report = tree.report("/g");
        assert_eq!((report.kind(), &report.writers[..]), (Kind::Membership, &[Writer::Kazoo][..]));
    }
}

#[test]
fn a_double_barrier_has_members_by_ids_alone_and_is_ready_or_not() {
    let tree = Tree::default().ephemeral(&format!("/b/{UUID}"), ADDRESS);
    let report = tree.report("/b");
    assert_eq!(report.may_be, [Kind::Membership]);
    let Recipe::DoubleBarrier(barrier) = report.recipe else { panic!("the recipe must be a barrier") };
    assert!(!barrier.is_ready);
    let report = tree.node("/b/ready", ADDRESS).report("/b");
    assert_eq!(report.may_be, []);
    let Recipe::DoubleBarrier(barrier) = report.recipe else { panic!("the recipe must be a barrier") };
    assert_eq!((barrier.is_ready, barrier.members.len()), (true, 1));
}

#[test]
fn a_partition_reports_the_owner_of_each_item() {
    let tree = Tree::default()
        .ephemeral(&format!("/p/party/{HEX}-host-1"), DOCENT)
        .ephemeral(&format!("/p/locks/a/_c_{UUID}-lock-0000000001"), DOCENT)
        .node("/p/locks/b", "");
    let Recipe::Partition(partition) = tree.report("/p").recipe else {
        panic!("the recipe must be a partition")
    };
    assert_eq!(partition.members[0].id, "host-1");
    let items: Vec<_> = partition.items.iter().map(|it| (it.name.as_str(), it.holder.is_some())).collect();
    assert_eq!(items, [("a", true), ("b", false)]);
}

#[test]
fn sequential_or_persistent_children_are_no_members() {
    let numbered = Tree::default().ephemeral("/g/n-0000000001", "");
    let lasting = Tree::default().ephemeral("/g/a", "").node("/g/b", "");
    for tree in [numbered, lasting] {
        assert_eq!(tree.report("/g").kind(), Kind::Plain);
    }
}
