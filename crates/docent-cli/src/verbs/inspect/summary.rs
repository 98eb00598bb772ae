use super::facts::facts;
use super::owner::describe_contender;
use super::rows::rows;
use docent::inspect::{Contender, Recipe};

/// Returns the state of a recipe in one line.
pub(super) fn summary(recipe: &Recipe) -> String {
    match recipe {
        Recipe::Mutex(line) | Recipe::ReadWriteLock(line) => {
            let holders: Vec<_> = line.holders().collect();
            lock(&holders, line.waiters().count())
        }
        Recipe::Semaphore(semaphore) => {
            let limit = semaphore.limit.map_or_else(String::new, |limit| format!(" of {limit}"));
            format!("{}{limit} permits out, {} waiting", semaphore.permits.len(), semaphore.waiters.len())
        }
        Recipe::Election(election) => match &election.leader {
            Some(leader) => format!("led by {}", describe_contender(leader)),
            None => format!("no leader, {} candidates", election.candidates.len()),
        },
        Recipe::Service(_) | Recipe::Membership(_) | Recipe::Registry(_) | Recipe::Partition(_) => {
            counted(recipe)
        }
        other => {
            let facts = facts(other).into_iter().map(|(name, value)| format!("{name} {value}"));
            facts.collect::<Vec<_>>().join(", ")
        }
    }
}

fn lock(holders: &[&Contender], waiting: usize) -> String {
    match holders {
        [] => "free".to_owned(),
        [holder] => format!("held by {}, {waiting} waiting", describe_contender(holder)),
        many => format!("{} holders, {waiting} waiting", many.len()),
    }
}

/// Returns the number of rows in each state.
fn counted(recipe: &Recipe) -> String {
    let rows = rows(recipe);
    let mut states: Vec<&str> = rows.iter().map(|row| &*row[0]).collect();
    states.sort_unstable();
    states.dedup();
    let count = |state: &&str| format!("{} {state}", rows.iter().filter(|row| row[0] == **state).count());
    match states.is_empty() {
        true => "empty".to_owned(),
        false => states.iter().map(count).collect::<Vec<_>>().join(", "),
    }
}
