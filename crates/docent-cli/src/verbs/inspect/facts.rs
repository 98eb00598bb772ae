use super::time::age;
use crate::output::utc;
use docent::inspect::{Recipe, Since};
use std::time::SystemTime;

/// Returns the named facts about a recipe as a whole.
pub(super) fn facts(recipe: &Recipe) -> Vec<(&'static str, String)> {
    match recipe {
        Recipe::Semaphore(semaphore) => optional("limit", semaphore.limit).into_iter().collect(),
        Recipe::Election(election) => optional("term", election.term).into_iter().collect(),
        Recipe::Queue(queue) => {
            let head = queue.head.as_ref().map(|head| format!("{}, {} old", head.name, age(head.since)));
            let dead = [optional("dead letters", queue.dead), optional("idle consumers", queue.idle)];
            let next = queue.next_due.map(|due| format!(", the next until {}", utc(due))).unwrap_or_default();
            let items = [("items", queue.depth.to_string()), ("delayed", format!("{}{next}", queue.delayed))];
            let more = [optional("in work", queue.claimed), optional("head", head)];
            items.into_iter().chain(more.into_iter().chain(dead).flatten()).collect()
        }
        Recipe::Config(config) => {
            let history = ("history", format!("{} earlier values", config.history.len()));
            let readers = (!config.readers.is_empty())
                .then(|| format!("{} of {} run this version", config.up_to_date(), config.readers.len()));
            let facts = value(config.version, config.size, config.modified).chain([history]);
            facts.chain(optional("readers", readers)).collect()
        }
        Recipe::Value(shared) => value(shared.version, shared.size, shared.modified).collect(),
        Recipe::Counter(counter) => {
            let number = ("number", counter.number.clone());
            [number].into_iter().chain(optional("changed", changed(counter.modified))).collect()
        }
        Recipe::Barrier(barrier) => {
            let set = barrier.since.and_then(changed);
            [optional("set", set), optional("by", barrier.identity.as_ref())].into_iter().flatten().collect()
        }
        Recipe::DoubleBarrier(barrier) => vec![("ready", yes_or_no(barrier.is_ready))],
        Recipe::TimedLease(lease) => {
            let expired = lease.is_over.map(yes_or_no);
            let facts = [
                optional("holder", lease.holder.as_ref()),
                optional("until", lease.end.map(utc)),
                optional("over", expired),
            ];
            facts.into_iter().flatten().collect()
        }
        Recipe::Plain(plain) => {
            let children = ("children", plain.children.to_string());
            value(plain.version, plain.size, plain.modified).chain([children]).collect()
        }
        _ => Vec::new(),
    }
}

fn optional(name: &'static str, value: Option<impl ToString>) -> Option<(&'static str, String)> {
    value.map(|value| (name, value.to_string()))
}

fn value(version: i32, size: usize, modified: Since) -> impl Iterator<Item = (&'static str, String)> {
    let facts = [("version", version.to_string()), ("bytes", size.to_string())];
    facts.into_iter().chain(optional("changed", changed(modified)))
}

/// Returns the time of a change, or `None` for nodes that the servers created without one, such as the root.
fn changed(since: Since) -> Option<String> {
    let is_known = since.at != SystemTime::UNIX_EPOCH;
    is_known.then(|| format!("{}, {} ago", utc(since.at), age(Some(since))))
}

fn yes_or_no(is: bool) -> String {
    (if is { "yes" } else { "no" }).to_owned()
}
