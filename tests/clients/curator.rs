//! Curator's recipes under contention, and its caches.

use crate::family::{Curator, Family};
use crate::for_clients;
use docent_battery::Backend;

/// Number of acquisitions by six threads.
const TIMES: usize = 60;
const CHANGES: usize = 1_000;

/// Creates one of Curator's objects and runs `verb` with `number`. Returns the numbers in the answer.
async fn run_recipe(backend: Backend, kind: &str, verb: &str, number: usize) -> Vec<usize> {
    let server = backend.start().await;
    let curator = Curator::start(&server).await;
    let recipe = curator.make(&format!("{kind} /contended")).await;
    let answer = recipe.done(&format!("{verb} {number}")).await;
    answer.iter().map(|number| number.parse().unwrap()).collect()
}

/// Checks that a cache shows the nodes that exist after all changes, and that it reported each change.
async fn follows(backend: Backend, kind: &str) {
    let answer = run_recipe(backend, kind, "follow", CHANGES).await;
    assert!(answer[0] > 0 && answer[1] > 0, "{answer:?}");
}

for_clients! {
    [Java] async fn a_mutex_is_acquired_by_six_threads(_family: Family, backend: Backend) {
        assert_eq!(run_recipe(backend, "mutex", "contend", TIMES).await, [TIMES, 1]);
    }

    [Java] async fn a_semaphore_of_two_is_acquired_by_six_threads(_family: Family, backend: Backend) {
        let answer = run_recipe(backend, "semaphore", "contend", TIMES).await;
        assert!(answer[0] == TIMES && (1..=2).contains(&answer[1]), "{answer:?}");
    }

    [Java] async fn a_read_write_lock_is_acquired_by_six_threads(_family: Family, backend: Backend) {
        assert_eq!(run_recipe(backend, "rw-lock", "contend", TIMES).await, [TIMES, 1]);
    }

    [Java] async fn latches_of_six_sessions_lead_one_after_the_other(_family: Family, backend: Backend) {
        assert_eq!(run_recipe(backend, "latch", "lead", 6).await, [6, 1]);
    }

    [Java] async fn a_persistent_node_is_re_created_each_time(_family: Family, backend: Backend) {
        assert_eq!(run_recipe(backend, "node", "delete", 20).await, [20]);
    }

    [Java] async fn a_curator_cache_follows_a_thousand_changes(_family: Family, backend: Backend) {
        follows(backend, "cache").await;
    }

    [Java] async fn a_path_children_cache_follows_a_thousand_changes(_family: Family, backend: Backend) {
        follows(backend, "path-cache").await;
    }

    [Java] async fn a_tree_cache_follows_a_thousand_changes(_family: Family, backend: Backend) {
        follows(backend, "tree-cache").await;
    }
}
