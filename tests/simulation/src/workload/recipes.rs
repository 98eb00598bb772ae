use super::Workload;
use super::barrier::BarrierWorkload;
use super::config::ConfigWorkload;
use super::discovery::DiscoveryWorkload;
use super::election::ElectionWorkload;
use super::multilock::MultiLockWorkload;
use super::mutex::MutexWorkload;
use super::queue::QueueWorkload;
use super::rwlock::RwLockWorkload;
use super::semaphore::SemaphoreWorkload;
use super::streams::StreamsWorkload;
use super::tree::TreeWorkload;
use fastrand::Rng;
use std::rc::Rc;

/// A recipe that can be simulated.
struct Recipe {
    name: &'static str,
    /// Draws a workload.
    workload: fn(&mut Rng) -> Rc<dyn Workload>,
    /// The planted defects that this workload shows.
    defects: &'static [&'static str],
}

/// All recipes, in the order in which a batch runs them. The first recipe shows the defects that no row
/// names, because these are common to all recipes.
const RECIPES: &[Recipe] = &[
    Recipe { name: "mutex", workload: |rng| Rc::new(MutexWorkload::draw(rng)), defects: &[] },
    Recipe {
        name: "cohort",
        workload: |rng| Rc::new(MutexWorkload::cohort(rng)),
        defects: &["turn-after-loss", "turns-without-limit", "turn-forgotten-on-cancel"],
    },
    Recipe {
        name: "rwlock",
        workload: |rng| Rc::new(RwLockWorkload::draw(rng)),
        defects: &[
            "reader-ignores-writer",
            "downgrade-takes-new-place",
            "reader-waits-for-readers",
            "downgrade-loses-fence",
        ],
    },
    Recipe {
        name: "semaphore",
        workload: |rng| Rc::new(SemaphoreWorkload::draw(rng)),
        defects: &["stale-limit"],
    },
    Recipe {
        name: "multilock",
        workload: |rng| Rc::new(MultiLockWorkload::draw(rng)),
        defects: &["part-of-set-kept", "set-unproven"],
    },
    Recipe {
        name: "barrier",
        workload: |rng| Rc::new(BarrierWorkload::draw(rng)),
        defects: &["ready-of-earlier-round", "leaves-at-once", "barrier-ignored"],
    },
    Recipe {
        name: "election",
        workload: |rng| Rc::new(ElectionWorkload::draw(rng)),
        defects: &[
            "work-goes-on-after-loss",
            "out-after-session-end",
            "takeover-delay-forgotten",
            "transaction-unchecked",
            "grace-is-margin",
            "waiter-sleeps-on",
            "term-ends-by-itself",
            "onlooker-stops-looking",
        ],
    },
    Recipe {
        name: "reign",
        workload: |rng| Rc::new(ElectionWorkload::steady(rng)),
        defects: &["own-deletion-unseen"],
    },
    Recipe {
        name: "queue",
        workload: |rng| Rc::new(QueueWorkload::draw(rng)),
        defects: &[
            "delete-before-processing",
            "no-node-is-claim",
            "put-retried-on-absence",
            "freed-claim-not-noticed",
            "marker-without-version",
            "claim-unchecked",
            "earlier-proof-stays",
            "hand-out-not-counted",
            "late-claim-forgotten",
            "offer-stands-for-ever",
            "claim-left-behind",
            "own-folder-of-the-first",
        ],
    },
    Recipe {
        name: "lull",
        workload: |rng| Rc::new(QueueWorkload::lull(rng)),
        defects: &["others-do-not-look", "dead-hold-line-up", "refused-not-passed-on"],
    },
    Recipe {
        name: "ordered",
        workload: |rng| Rc::new(QueueWorkload::ordered(rng)),
        defects: &["second-before-first", "buried-beside-others"],
    },
    Recipe {
        name: "discovery",
        workload: |rng| Rc::new(DiscoveryWorkload::draw(rng)),
        defects: &[
            "blind-delete",
            "no-read-on-reconnect",
            "gap-taken-for-told",
            "bad-node-spoils-list",
            "known-without-watch",
            "deleted-unseen",
            "parts-by-length",
            "grace-forgotten",
        ],
    },
    Recipe {
        name: "config",
        workload: |rng| Rc::new(ConfigWorkload::draw(rng)),
        defects: &[
            "older-after-newer",
            "guessed-version-not-sent",
            "exact-write-sent-again",
            "cas-without-version",
        ],
    },
    Recipe {
        name: "streams",
        workload: |rng| Rc::new(StreamsWorkload::draw(rng)),
        defects: &["folded-zxid"],
    },
    Recipe {
        name: "watches",
        workload: |rng| Rc::new(TreeWorkload::draw(rng)),
        defects: &[
            "event-after-remove-watches",
            "one-shot-stays",
            "recursive-misses-deep-deletes",
            "persistent-fires-once",
            "recursive-not-set-again",
            "deletion-told-twice",
            "children-counted-alone",
            "ephemerals-of-another",
        ],
    },
];

/// Names of all recipes.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    RECIPES.iter().map(|recipe| recipe.name)
}

/// The recipe whose workload shows a planted defect.
pub(crate) fn of_defect(defect: &str) -> &'static str {
    let shows = RECIPES.iter().find(|recipe| recipe.defects.contains(&defect));
    shows.unwrap_or(&RECIPES[0]).name
}

/// Returns true if a workload names this defect as one that it shows.
#[cfg(docent_planted)]
pub(crate) fn shows(defect: &str) -> bool {
    RECIPES.iter().any(|recipe| recipe.defects.contains(&defect))
}

/// Draws a workload of a recipe.
pub(crate) fn by_name(name: &str, rng: &mut Rng) -> Option<Rc<dyn Workload>> {
    RECIPES.iter().find(|recipe| recipe.name == name).map(|recipe| (recipe.workload)(rng))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_recipe_is_found_by_its_name() {
        for name in names() {
            assert!(by_name(name, &mut Rng::with_seed(1)).is_some(), "{name}");
        }
        assert!(by_name("mutexes", &mut Rng::with_seed(1)).is_none());
    }

    #[test]
    fn no_two_recipes_share_a_name_or_a_defect() {
        let defects = || RECIPES.iter().flat_map(|recipe| recipe.defects);
        assert_eq!(names().collect::<BTreeSet<_>>().len(), names().count());
        assert_eq!(defects().collect::<BTreeSet<_>>().len(), defects().count());
    }

    #[test]
    fn a_defect_that_no_recipe_names_is_shown_by_the_mutex() {
        assert_eq!((of_defect("no-owner-check"), of_defect("stale-limit")), ("mutex", "semaphore"));
    }
}
