use super::plan::{Plan, plans};
use super::table::Table;
use super::trial::{self, Outcome};
use docent_battery::{Backend, both_backends_in_real_time};
use futures_util::{StreamExt, stream};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Number of trials at a time.
const AT_ONCE: usize = 4;

both_backends_in_real_time! {
    async fn no_process_of_a_holder_is_alive_when_the_next_one_starts(backend: Backend) {
        let shared = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let copy = folder.path().join("docent");
        fs::copy(env!("CARGO_BIN_EXE_docent"), &copy).unwrap();
        let run = async |plan: Plan| {
            let user = if plan.is_ordinary { ", as an ordinary user" } else { "" };
            println!("seed {}: {:?}, {}{user}, after {:?}", plan.seed, plan.fault, plan.kind.name, plan.delay);
            let outcome = match plan.fault.stops_server() {
                true => trial::run(plan, &backend.start_own().await, &copy).await,
                false => trial::run(plan, &shared, &copy).await,
            };
            println!("seed {}: {outcome:?}", plan.seed);
            (plan, outcome)
        };
        let outcomes: Vec<_> = stream::iter(plans()).map(run).buffer_unordered(AT_ONCE).collect().await;
        println!("{}", Table(outcomes.clone()));
        let bad = |outcome| [Outcome::Overlap, Outcome::Kept].contains(&outcome);
        let bad: Vec<_> = outcomes.into_iter().filter(|(_, outcome)| bad(*outcome)).collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }
}
