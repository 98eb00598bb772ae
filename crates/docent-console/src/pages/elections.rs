use super::draw::{Drawn, List, Part, Rows};
use super::filter::Filter;
use super::html::{Pen, row_id};
use super::lists::{address, found, owner, parts};
use super::view::ListPage;
use crate::world::{Term, World};
use docent::inspect::{Recipe, Report};
use maud::{Markup, html};

/// Draws the list of elections: who leads, who stands by, and how often the leader changed.
pub(super) fn draw(world: &World, filter: &Filter, pen: &Pen<'_>) -> Drawn {
    let page = ListPage::Elections;
    let found = found(world, page, filter, pen);
    let rows = Rows::Table(&["Path", "Leader", "Since", "Candidates", "Terms seen"]);
    let list =
        List::new(rows, &found, filter.from, address(page, filter), |_, report| row(world, report, pen));
    Drawn { title: page.title().to_owned(), parts: parts(page, filter, found.len(), Part::List(list), pen) }
}

fn row(world: &World, report: &Report, pen: &Pen<'_>) -> (String, Markup) {
    let id = row_id(&report.path);
    let candidates = match &report.recipe {
        Recipe::Election(election) => election.candidates.len(),
        _ => 0,
    };
    let row = html! {
        tr id=(id) {
            th scope="row" { (pen.path(&report.path)) }
            td data-label="Leader" { (owner(report, pen).unwrap_or_else(|| "none".to_owned())) }
            td data-label="Since" { (pen.since(report.since())) }
            td data-label="Candidates" { (candidates) }
            td data-label="Terms seen" { (world.terms(&report.path).len()) }
        }
    };
    (id, row)
}

/// The leaders that were seen, the latest first.
pub(super) fn terms(terms: &[Term], pen: &Pen<'_>) -> Markup {
    html! {
        section #terms .block {
            h2 { "Terms since this console started" }
            @if terms.is_empty() { p.empty { "No leader was seen." } } @else {
                ol.terms {
                    @for term in terms {
                        li.is-current[term.until.is_none()] {
                            span.owner { (term.leader) } " " (pen.moment(term.from)) " \u{2013} "
                            @match term.until { Some(until) => (pen.moment(until)), None => "now" }
                        }
                    }
                }
            }
        }
    }
}
