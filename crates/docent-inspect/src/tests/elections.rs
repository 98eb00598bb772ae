use super::tree::Tree;
use super::{ADDRESS, DOCENT, UUID};
use crate::{Election, ElectionLayout, Kind, Recipe};

fn election(recipe: Recipe) -> Election {
    match recipe {
        Recipe::Election(election) => election,
        other => panic!("not an election: {other:?}"),
    }
}

#[test]
fn a_leader_latch_reports_its_leader_and_the_next_candidates() {
    let tree = Tree::default()
        .ephemeral(&format!("/e/_c_{UUID}-latch-0000000003"), "host-3")
        .ephemeral(&format!("/e/_c_{UUID}-latch-0000000001"), "host-1")
        .ephemeral(&format!("/e/_c_{UUID}-latch-0000000002"), "");
    let report = tree.report("/e");
    assert_eq!(report.may_be, []);
    let election = election(report.recipe);
    assert_eq!((election.layout, election.term), (ElectionLayout::LeaderLatch, None));
    let leader = election.leader.unwrap();
    assert_eq!(leader.identity.unwrap().as_str(), Some("host-1"));
    let next: Vec<_> = election.candidates.iter().map(|one| one.number.unwrap()).collect();
    assert_eq!(next, [2, 3]);
    assert!(election.candidates.iter().all(|one| !one.holds && one.waits_for.is_some()));
}

#[test]
fn ids_distinguish_a_leader_selector_from_a_mutex() {
    let at =
        |data: &str| Tree::default().ephemeral(&format!("/e/_c_{UUID}-lock-0000000001"), data).report("/e");
    let report = at("scheduler-7");
    assert_eq!((report.kind(), &report.may_be[..]), (Kind::Election, &[Kind::Mutex][..]));
    assert_eq!(election(report.recipe).layout, ElectionLayout::LeaderSelector);
    for default in [ADDRESS, DOCENT, "", "::1", "__REVOKE__"] {
        let report = at(default);
        assert_eq!((report.kind(), &report.may_be[..]), (Kind::Mutex, &[Kind::Election][..]), "{default}");
    }
}

#[test]
fn the_term_in_the_elections_node_is_reported() {
    let tree = Tree::default()
        .node("/e", "docent-term:4294967301")
        .ephemeral(&format!("/e/_c_{UUID}-lock-0000000001"), DOCENT);
    let report = tree.report("/e");
    assert_eq!(election(report.recipe).term.unwrap().as_u64(), 4_294_967_301);
}

#[test]
fn an_id_does_not_distinguish_docents_elections_from_curators() {
    let at = |data: &str| {
        let report = Tree::default().ephemeral(&format!("/e/_c_{UUID}-latch-0000000001"), data).report("/e");
        report.writers.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(at("scheduler-7"), ["docent or curator"]);
    assert_eq!(at(DOCENT), ["docent"]);
    assert_eq!(at(ADDRESS), ["curator"]);
}
