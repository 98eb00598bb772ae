use super::draw::{Drawn, List, Part, Rows};
use super::filter::Filter;
use super::html::{Pen, at, row_id};
use super::line::{Place, line, members};
use super::lists::words;
use super::node::no_recipe;
use super::values::{config, facts};
use super::{configs, elections, queues};
use crate::world::World;
use crate::world::{short_text, shortened};
use docent::inspect::{
    Contender, DeadLetter, Instance, InstanceState, Queue, QueueLayout, Recipe, RegistryLayout, Report,
    Service, printable,
};
use maud::{Markup, html};

/// Blocks of recipes, which end with them.
const ENDING: [&str; 8] = ["facts", "terms", "charts", "claims", "rollout", "versions", "items", "rules"];

/// What contenders of locks do, in front and behind.
const HOLDING: (&str, &str) = ("holds", "waits");

/// Draws the page of one recipe.
pub(super) fn draw(world: &World, path: &str, filter: &Filter, pen: &Pen<'_>) -> Drawn {
    let title = printable(path);
    let Some(report) = world.report(path) else {
        // The blocks and rows of the recipe that was here end, too.
        let rows =
            List::new(Rows::Line, &[] as &[()], 0, String::new(), |_, ()| unreachable!("there are no rows"));
        let ended = ENDING.map(|id| Part::Block(id, html! { section id=(id) hidden {} }));
        let parts = [Part::Block("about", no_recipe())].into_iter().chain(ended).chain([Part::List(rows)]);
        return Drawn { title, parts: parts.collect() };
    };
    let mut parts = vec![
        Part::Block("about", about(&report, pen)),
        Part::Block("facts", facts(&report.recipe, world.now(), pen)),
    ];
    let address = format!("{}?", at(path));
    let from = filter.from;
    match &report.recipe {
        Recipe::Mutex(locked) | Recipe::ReadWriteLock(locked) => {
            let all = locked.contenders.iter().map(|one| (one, one.holds));
            let places = places(all, HOLDING, true);
            parts.push(Part::List(line(path, &places, from, address, pen)));
        }
        Recipe::Semaphore(semaphore) => {
            let waiters = semaphore.waiters.iter().map(|one| (one, false));
            let all = semaphore.permits.iter().map(|one| (one, true)).chain(waiters);
            let places = places(all, HOLDING, true);
            parts.push(Part::List(line(path, &places, from, address, pen)));
        }
        Recipe::Election(election) => {
            let leader = election.leader.as_ref();
            let others =
                election.candidates.iter().filter(|one| leader.is_none_or(|leader| leader.name != one.name));
            let all = leader.iter().map(|one| (*one, true)).chain(others.map(|one| (one, false)));
            let places = places(all, ("leads", "stands by"), false);
            parts.push(Part::List(line(path, &places, from, address, pen)));
            parts.push(Part::Block("terms", elections::terms(&world.terms(path), pen)));
        }
        Recipe::Service(service) => {
            parts.push(Part::List(instances(path, service, from, address, pen)));
            parts.push(Part::Block("rules", rules(path, service, pen)));
        }
        Recipe::Registry(registry) => {
            let rows = Rows::Table(&["Service", "Instances"]);
            parts.push(Part::List(List::new(rows, &registry.services, from, address, |_, service| {
                let id = row_id(&service.node);
                let below = format!("{}/{}", path.trim_end_matches('/'), service.node);
                let row = html! {
                    tr id=(id) {
                        th scope="row" { a.path href=(pen.at(&below)) { (printable(&service.name)) } }
                        td data-label="Instances" { @if let Some(count) = service.instances { (count) } }
                    }
                };
                (id, row)
            })));
        }
        Recipe::Queue(queue) => {
            parts.push(Part::Block("charts", queues::charts(&world.samples(path))));
            parts.push(Part::Block("claims", claims(path, queue, pen)));
            parts.push(Part::List(letters(path, queue, from, address, pen)));
        }
        Recipe::Config(value) => {
            parts.push(Part::Block("rollout", configs::rollout(value, pen)));
            parts.push(Part::Block("versions", config(path, value, pen)));
        }
        Recipe::Membership(group) => parts.push(Part::List(members(&group.members, from, address, pen))),
        Recipe::DoubleBarrier(barrier) => {
            parts.push(Part::List(members(&barrier.members, from, address, pen)));
        }
        Recipe::Partition(partition) => {
            let holders: Vec<_> =
                partition.items.iter().map(|item| (&item.name, item.holder.as_ref())).collect();
            parts.push(Part::Block("items", items(&holders, pen)));
            parts.push(Part::List(members(&partition.members, from, address, pen)));
        }
        _ => {}
    }
    Drawn { title, parts }
}

/// What the path is, and what the report lacks.
fn about(report: &Report, pen: &Pen<'_>) -> Markup {
    let writers: Vec<_> = report.writers.iter().map(ToString::to_string).collect();
    let others: Vec<_> = report.may_be.iter().map(|kind| words(*kind)).collect();
    html! {
        section #about .block data-kind=(report.kind().name()) {
            p.about {
                span.badge { (words(report.kind())) }
                @if !writers.is_empty() { " written by " (writers.join(", ")) }
                @if !others.is_empty() { "; the same layout as: " (others.join(", ")) }
                @if let Some(whole) = &report.part_of { "; part of " (pen.path(whole)) }
            }
            @if !report.refused.is_empty() {
                p.error { (report.refused.len()) " nodes may not be read by this console." }
            }
            @if !report.left_out.is_empty() { p.error { "Not everything is shown, because a limit was reached." } }
            p { a href={ (pen.base) "/nodes?path=" (percent_encoding::utf8_percent_encode(&report.path, percent_encoding::NON_ALPHANUMERIC)) } { "Nodes" } " " (pen.data(&report.path, "Data of the node")) }
        }
    }
}

/// Returns contenders with what they are called: the first word for those in front, the second for the
/// others.
fn places<'a>(
    all: impl Iterator<Item = (&'a Contender, bool)>,
    (front, behind): (&'static str, &'static str),
    can_be_asked: bool,
) -> Vec<Place<'a>> {
    let place =
        |(one, is_front)| Place { one, role: if is_front { front } else { behind }, is_front, can_be_asked };
    all.map(place).collect()
}

fn instances(path: &str, service: &Service, from: usize, address: String, pen: &Pen<'_>) -> List {
    let rows =
        Rows::Table(&["Instance", "State", "Address", "Zone", "Weight", "Since", "Details", "Actions"]);
    List::new(rows, &service.instances, from, address, |_, one| {
        let id = row_id(&one.node);
        let state = crate::world::state_name(one.state);
        let row = html! {
            tr id=(id) {
                th scope="row" { (shortened(&printable(one.id.as_ref().unwrap_or(&one.node)))) }
                td data-label="State" { span class={ "badge is-" (state) } { (state) } }
                td data-label="Address" { (endpoint(one)) }
                td data-label="Zone" { @if let Some(zone) = one.zone().filter(|_| pen.shows_data) { (shortened(&printable(zone))) } }
                td data-label="Weight" { @if let Some(weight) = one.weight { (weight) } }
                td data-label="Since" { (pen.since(one.since)) }
                td data-label="Details" { (details(one, pen)) }
                td data-label="Actions" {
                    @match one.state {
                        InstanceState::Enabled if can_change(service, one, false) => (pen.action("disable", path, &one.node, "Disable")),
                        InstanceState::Disabled if can_change(service, one, true) => (pen.action("enable", path, &one.node, "Enable")),
                        _ => {},
                    }
                }
            }
        };
        (id, row)
    })
}

/// Returns true if an instance can be disabled, or enabled if it `is_disabled`. In Dubbo's layout, a rule
/// must be able to name the instance, and only that rule can be undone.
fn can_change(service: &Service, instance: &Instance, is_disabled: bool) -> bool {
    let rule = service.disabling_rule(instance);
    let has_rule = rule.as_ref().is_some_and(|rule| service.rules.contains(rule));
    service.layout == RegistryLayout::Curator || rule.is_some() && is_disabled == has_rule
}

/// Rules by which an operator changes the instances of a service in Dubbo's layout.
fn rules(path: &str, service: &Service, pen: &Pen<'_>) -> Markup {
    /// Maximum number of rules to show.
    const SHOWN: usize = 100;
    html! {
        section #rules .block hidden[service.rules.is_empty()] {
            h2 { "Overrides" }
            ul.rules {
                @for (name, rule) in service.rules.iter().zip(service.rule_texts()).take(SHOWN) {
                    li { code { (shortened(&printable(&rule))) } " " (pen.action("delete", path, name, "Delete")) }
                }
            }
            @if service.rules.len() > SHOWN { p { "and " (service.rules.len() - SHOWN) " more" } }
        }
    }
}

fn endpoint(one: &Instance) -> String {
    let address = one.address.as_deref().map(|address| shortened(&printable(address))).unwrap_or_default();
    match (one.port, one.ssl_port) {
        (Some(port), None) => format!("{address}:{port}"),
        (None, Some(port)) => format!("{address}:{port} (TLS)"),
        (Some(port), Some(secure)) => format!("{address}:{port}, {secure} (TLS)"),
        (None, None) => address,
    }
}

/// Payload of an instance, such as its zone, or why the instance cannot be read.
fn details(one: &Instance, pen: &Pen<'_>) -> Markup {
    html! {
        @if let Some(fault) = &one.fault { span.error { (fault) } }
        @if let Some(payload) = one.payload.as_ref().filter(|_| pen.shows_data) { code { (payload) } }
    }
}

fn claims(path: &str, queue: &Queue, pen: &Pen<'_>) -> Markup {
    /// Maximum number of claims to show.
    const SHOWN: usize = 100;
    html! {
        section #claims .block {
            h2 { "In work" }
            @if queue.claims.is_empty() { p.empty { "No item is claimed." } } @else {
                ol.claims {
                    @for claim in queue.claims.iter().take(SHOWN) {
                        li {
                            span { (printable(&claim.item)) } " by "
                            span.owner { @match &claim.identity { Some(text) => (short_text(text)), None => "an unknown owner" } } " "
                            (pen.since(claim.since)) " " (pen.session(claim.session)) " "
                            @if ![QueueLayout::Curator, QueueLayout::CuratorClaims].contains(&queue.layout) { (pen.action("delete", path, &claim.item, "Delete the claim")) }
                        }
                    }
                }
                @if queue.claims.len() > SHOWN { p { "and " (queue.claims.len() - SHOWN) " more" } }
            }
        }
    }
}

fn letters(path: &str, queue: &Queue, from: usize, address: String, pen: &Pen<'_>) -> List {
    let rows = Rows::Table(&["Dead letter", "Reason", "Deliveries", "Since", "Actions"]);
    List::new(rows, &queue.dead_letters, from, address, |_, letter: &DeadLetter| {
        let id = row_id(&letter.name);
        let row = html! {
            tr id=(id) {
                th scope="row" { (printable(&letter.name)) }
                td data-label="Reason" {
                    (letter.reason.as_deref().map(|reason| shortened(&printable(reason))).unwrap_or_default())
                    @if let Some(detail) = letter.detail.as_ref().filter(|detail| pen.shows_data && !detail.is_empty()) { ": " (printable(detail)) }
                }
                td data-label="Deliveries" { @if let Some(count) = letter.deliveries { (count) } }
                td data-label="Since" { (pen.since(letter.since)) }
                td data-label="Actions" {
                    (pen.data(&format!("{}/dead/{}", path.trim_end_matches('/'), letter.name), "Payload")) " "
                    (pen.action("requeue", path, &letter.name, "Put back")) " "
                    (pen.action("discard", path, &letter.name, "Delete"))
                }
            }
        };
        (id, row)
    })
}

fn items(items: &[(&String, Option<&Contender>)], pen: &Pen<'_>) -> Markup {
    /// Maximum number of items to show.
    const SHOWN: usize = 500;
    html! {
        section #items .block {
            h2 { "Items" }
            ol.claims {
                @for (name, holder) in items.iter().take(SHOWN) {
                    li {
                        span { (printable(name)) } " "
                        @match holder {
                            Some(one) => { "held by session " (pen.session(one.session)) " " (pen.since(one.since)) },
                            None => "not held",
                        }
                    }
                }
            }
            @if items.len() > SHOWN { p { "and " (items.len() - SHOWN) " more" } }
        }
    }
}
