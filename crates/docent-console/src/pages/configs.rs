use super::draw::{Drawn, List, Part, Rows};
use super::filter::Filter;
use super::html::{Pen, row_id};
use super::lists::{address, found, parts, state, words};
use super::view::ListPage;
use crate::world::{World, shortened};
use docent::inspect::{ConfigReader, ConfigReport, Recipe, Report, printable};
use maud::{Markup, html};
use std::time::SystemTime;

/// Draws the list of configurations, shared values and counters.
pub(super) fn draw(world: &World, filter: &Filter, pen: &Pen<'_>) -> Drawn {
    let page = ListPage::Config;
    let found = found(world, page, filter, pen);
    let rows = Rows::Table(&["Path", "Kind", "Running", "Since", "State"]);
    let now = world.now();
    let list = List::new(rows, &found, filter.from, address(page, filter), |_, report| row(report, now, pen));
    Drawn { title: page.title().to_owned(), parts: parts(page, filter, found.len(), Part::List(list), pen) }
}

fn row(report: &Report, now: SystemTime, pen: &Pen<'_>) -> (String, Markup) {
    let id = row_id(&report.path);
    let running = match &report.recipe {
        Recipe::Config(config) if !config.readers.is_empty() => {
            format!("{}/{}", config.up_to_date(), config.readers.len())
        }
        _ => String::new(),
    };
    let row = html! {
        tr id=(id) {
            th scope="row" { (pen.path(&report.path)) }
            td data-label="Kind" { (words(report.kind())) }
            td data-label="Running" { (running) }
            td data-label="Since" { (pen.since(report.since())) }
            td data-label="State" { (state(report, now, pen)) }
        }
    };
    (id, row)
}

/// The readers of a configuration, those that do not run the current value first.
pub(super) fn rollout(config: &ConfigReport, pen: &Pen<'_>) -> Markup {
    /// Maximum number of readers to show.
    const SHOWN: usize = 100;
    let (all, done) = (config.readers.len(), config.up_to_date());
    let is_current = |reader: &&ConfigReader| reader.is_current == Some(true);
    let (current, others): (Vec<_>, Vec<_>) = config.readers.iter().partition(is_current);
    html! {
        section #rollout .block {
            h2 { "Who runs what" }
            @if all == 0 { p.empty { "No client publishes which version it runs." } } @else {
                p.rollout {
                    (done) " of " (all) " run version " (config.version) " "
                    progress max=(all) value=(done) aria-label="Readers that run the current version" {}
                }
                ol.claims {
                    @for reader in others.into_iter().chain(current).take(SHOWN) { (row_of(reader, pen)) }
                }
                @if all > SHOWN { p { "and " (all - SHOWN) " more" } }
            }
        }
    }
}

fn row_of(reader: &ConfigReader, pen: &Pen<'_>) -> Markup {
    html! {
        li {
            span.owner { (shortened(&printable(&reader.id))) } " "
            @match (reader.version, reader.is_current) {
                (Some(version), Some(true)) => span.badge.is-good { "version " (version) ", current" },
                (Some(version), _) => span.badge.is-warning { "version " (version) },
                (None, _) => span.badge.is-unreadable { "unreadable" },
            }
            " " (pen.since(reader.since)) " " (pen.session(reader.session))
        }
    }
}
