use super::draw::{Drawn, List, Part, Rows};
use super::filter::Filter;
use super::html::{Pen, counted, row_id};
use super::view::ListPage;
use crate::world::{World, owner_of, shortened};
use docent::inspect::{Contender, Kind, Recipe, Report, printable};
use maud::{Markup, html};
use std::sync::Arc;
use std::time::SystemTime;

/// Draws a list of recipes.
pub(super) fn draw(world: &World, page: ListPage, filter: &Filter, pen: &Pen<'_>) -> Drawn {
    let found = found(world, page, filter, pen);
    let rows = Rows::Table(&["Path", "Kind", "Owner", "Since", "State"]);
    let now = world.now();
    let list = List::new(rows, &found, filter.from, address(page, filter), |_, report| row(report, now, pen));
    Drawn { title: page.title().to_owned(), parts: parts(page, filter, found.len(), Part::List(list), pen) }
}

/// Returns the recipes of a page, filtered and sorted.
pub(super) fn found(world: &World, page: ListPage, filter: &Filter, pen: &Pen<'_>) -> Vec<Arc<Report>> {
    let (kinds, now) = (page.kinds(), world.now());
    let mut found = world.select(|report| {
        (kinds.is_empty() || kinds.contains(&report.kind())) && filter.selects(report, now, pen.shows_data)
    });
    filter.sort(&mut found, pen.shows_data);
    found
}

pub(super) fn address(page: ListPage, filter: &Filter) -> String {
    format!("/{}?{}", page.name(), filter.query())
}

/// Returns the parts of a list page: its filters, the number of rows, the list, and a text if it is empty.
pub(super) fn parts(page: ListPage, filter: &Filter, count: usize, list: Part, pen: &Pen<'_>) -> Vec<Part> {
    let filters = html! {
        section #filters .block {
            form.filters action={ (pen.base) "/" (page.name()) } {
                label { "Text " input name="q" value=(filter.q); }
                @if page.kinds().len() > 1 {
                    label { "Kind " select name="kind" {
                        option value="" { "all" }
                        @for kind in page.kinds() {
                            option value=(kind.name()) selected[filter.kind == kind.name()] { (words(*kind)) }
                        }
                    } }
                }
                label { "Older than " input name="older" value=(filter.older) placeholder="10m" size="6"; }
                label { "Sort by " select name="sort" {
                    @for sort in ["path", "age", "owner"] { option selected[filter.sort == sort] { (sort) } }
                } }
                button { "Apply" }
            }
            @if let Err(text) = filter.minimum_age() {
                p.error role="alert" { "\u{201c}" (text) "\u{201d} is not a time such as 90s, 10m or 2h, so rows of any age are shown." }
            }
        }
    };
    let noun = counted(count, "recipe", "recipes");
    let summary = html! { p #summary .summary { (noun) } };
    let empty = html! {
        div #empty { @if count == 0 { p.empty { "No recipe here matches. Recipes appear as soon as a client uses them." } } }
    };
    vec![Part::Block("filters", filters), Part::Block("summary", summary), list, Part::Block("empty", empty)]
}

pub(super) fn words(kind: Kind) -> String {
    kind.name().replace('_', " ")
}

fn row(report: &Report, now: SystemTime, pen: &Pen<'_>) -> (String, Markup) {
    let id = row_id(&report.path);
    let row = html! {
        tr id=(id) {
            th scope="row" { (pen.path(&report.path)) }
            td data-label="Kind" { (words(report.kind())) }
            td data-label="Owner" { (owner(report, pen).unwrap_or_default()) }
            td data-label="Since" { (pen.since(report.since())) }
            td data-label="State" { (state(report, now, pen)) }
        }
    };
    (id, row)
}

/// Returns the first owner and the number of others.
pub(super) fn owner(report: &Report, pen: &Pen<'_>) -> Option<String> {
    let stakes = report.stakes();
    let mut owners = stakes.iter().filter(|stake| stake.role.is_owner());
    let first = owner_of(owners.next()?, pen.shows_data);
    let more = owners.count();
    Some(if more == 0 { first } else { format!("{first} and {more} more") })
}

/// Returns the state in a few words.
pub(super) fn state(report: &Report, now: SystemTime, pen: &Pen<'_>) -> Markup {
    let waiting = |count: usize| format!("{count} waiting");
    match &report.recipe {
        Recipe::Mutex(line) => html! { (waiting(line.waiters().count())) (revoked(&line.contenders)) },
        Recipe::ReadWriteLock(line) => html! {
            (counted(line.holders().count(), "holder", "holders")) ", " (waiting(line.waiters().count())) (revoked(&line.contenders))
        },
        Recipe::Semaphore(semaphore) => html! {
            (semaphore.permits.len()) @if let Some(limit) = semaphore.limit { " of " (limit) } " permits, "
            (waiting(semaphore.waiters.len())) (revoked(&semaphore.permits))
        },
        Recipe::TimedLease(lease) => html! {
            @if let Some(holder) = &lease.holder { (shortened(&printable(holder))) }
            @if lease.end.is_some_and(|end| end < now) { " over" }
        },
        Recipe::Election(election) => {
            html! { (counted(election.candidates.len(), "candidate", "candidates")) }
        }
        Recipe::Service(service) => {
            let count = |name| {
                service.instances.iter().filter(|one| crate::world::state_name(one.state) == name).count()
            };
            html! {
                @for name in ["enabled", "disabled", "unreadable"] {
                    @let count = count(name);
                    @if count > 0 { span class={ "badge is-" (name) } { (count) " " (name) } " " }
                }
            }
        }
        Recipe::Registry(registry) => html! { (counted(registry.services.len(), "service", "services")) },
        Recipe::Queue(queue) => html! { (counted(queue.depth, "item", "items")) },
        Recipe::Config(config) => html! {
            "version " (config.version) ", " (counted(config.size, "byte", "bytes")) ", " (config.history.len()) " earlier"
        },
        Recipe::Value(value) => {
            html! { "version " (value.version) ", " (counted(value.size, "byte", "bytes")) }
        }
        Recipe::Counter(counter) => html! { @if pen.shows_data { (shortened(&printable(&counter.number))) } },
        Recipe::Membership(group) => html! { (counted(group.members.len(), "member", "members")) },
        Recipe::DoubleBarrier(barrier) => html! {
            (counted(barrier.members.len(), "member", "members")) @if barrier.is_ready { ", open" }
        },
        Recipe::Partition(partition) => html! {
            (counted(partition.members.len(), "member", "members")) ", " (counted(partition.items.len(), "item", "items"))
        },
        Recipe::Barrier(_) => html! { "set" },
        _ => html! {},
    }
}

fn revoked(contenders: &[Contender]) -> Markup {
    let count = contenders.iter().filter(|one| one.is_revoked).count();
    html! { @if count > 0 { " " span.badge { (count) " asked to leave" } } }
}
