use super::html::{Pen, counted};
use crate::world::{short_text, shortened};
use docent::inspect::{ConfigReport, Recipe, Since, printable};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::SystemTime;

/// Facts about a recipe as a whole.
pub(super) fn facts(recipe: &Recipe, now: SystemTime, pen: &Pen<'_>) -> Markup {
    html! { section #facts .block { dl.facts { (rows(recipe, now, pen)) } } }
}

fn rows(recipe: &Recipe, now: SystemTime, pen: &Pen<'_>) -> Markup {
    match recipe {
        Recipe::Mutex(line) | Recipe::ReadWriteLock(line) => html! {
            (fact("Holders", &html! { (line.holders().count()) })) (fact("Waiting", &html! { (line.waiters().count()) }))
        },
        Recipe::Semaphore(semaphore) => html! {
            (fact("Permits in use", &html! { (semaphore.permits.len()) }))
            @if let Some(limit) = semaphore.limit { (fact("Limit", &html! { (limit) })) }
            (fact("Waiting", &html! { (semaphore.waiters.len()) }))
        },
        Recipe::Election(election) => html! {
            (fact("Candidates", &html! { (election.candidates.len()) }))
            @if let Some(term) = &election.term { (fact("Term", &html! { (term) })) }
        },
        Recipe::Queue(queue) => html! {
            (fact("Items", &html! { (queue.depth) }))
            @if queue.delayed > 0 { (fact("Delayed", &html! { (queue.delayed) })) }
            @if let Some(next) = queue.next_due { (fact("Next due", &pen.moment(next))) }
            @if let Some(claimed) = queue.claimed { (fact("In work", &html! { (claimed) })) }
            @if let Some(idle) = queue.idle { (fact("Idle consumers", &html! { (idle) })) }
            @if let Some(head) = &queue.head {
                (fact("Head", &html! { (printable(&head.name)) " " (pen.since(head.since)) }))
            }
            @if let Some(dead) = queue.dead { (fact("Dead letters", &html! { (dead) })) }
        },
        Recipe::Config(config) => value(config.version, config.size, config.modified, pen),
        Recipe::Value(shared) => value(shared.version, shared.size, shared.modified, pen),
        Recipe::Counter(counter) => html! {
            @if pen.shows_data { (fact("Number", &html! { (shortened(&printable(&counter.number))) })) } (fact("Changed", &pen.since(Some(counter.modified))))
        },
        Recipe::Barrier(barrier) => html! {
            @if let Some(by) = barrier.identity.as_ref().filter(|_| pen.shows_data) { (fact("Set by", &html! { (short_text(by)) })) }
            (fact("Since", &pen.since(barrier.since)))
        },
        Recipe::DoubleBarrier(barrier) => {
            fact("Open", &html! { (if barrier.is_ready { "yes" } else { "no" }) })
        }
        Recipe::TimedLease(lease) => html! {
            @if let Some(holder) = &lease.holder { (fact("Holder", &html! { (shortened(&printable(holder))) })) }
            @if let Some(end) = lease.end { (fact("Until", &pen.moment(end))) }
            @if let Some(end) = lease.end { (fact("Over", &html! { (if end < now { "yes" } else { "no" }) })) }
        },
        _ => html! {},
    }
}

fn fact(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

fn value(version: i32, size: usize, modified: Since, pen: &Pen<'_>) -> Markup {
    html! {
        (fact("Version", &html! { (version) })) (fact("Size", &html! { (counted(size, "byte", "bytes")) }))
        (fact("Published", &html! { (pen.moment(modified.at)) " (" (pen.since(Some(modified))) ")" }))
    }
}

/// The earlier values of a configuration.
pub(super) fn config(path: &str, config: &ConfigReport, pen: &Pen<'_>) -> Markup {
    let path = utf8_percent_encode(path, NON_ALPHANUMERIC).to_string();
    html! {
        section #versions .block {
            h2 { "Earlier values" }
            @if config.history.is_empty() { p.empty { "None." } } @else {
                ol.versions {
                    @for earlier in &config.history {
                        li {
                            "version " (earlier.version) " " (pen.moment(earlier.modified)) " "
                            @if pen.shows_data {
                                a href={ (pen.base) "/diff?path=" (path) "&from=" (earlier.mzxid) } { "Compare with the current value" } " "
                            }
                            @if pen.allows_actions {
                                a.action href={ (pen.base) "/act?do=rollback&path=" (path) "&node=" (earlier.mzxid) } { "Publish again" }
                            }
                        }
                    }
                }
            }
        }
    }
}
