use super::draw::{Drawn, Part};
use super::ensemble;
use super::html::{Pen, counted};
use super::view::ListPage;
use crate::world::{Totals, World};
use docent::{Client, ConnectionState};
use maud::{Markup, html};

/// Maximum number of findings on the page.
const MAX_FINDINGS: usize = 50;

/// Maximum number of changes on the page.
const MAX_CHANGES: usize = 20;

/// Draws the first page: what there is, what needs a look, and what has changed.
pub(super) fn draw(world: &World, client: &Client, pen: &Pen<'_>) -> Drawn {
    let totals = world.totals();
    let parts = vec![
        Part::Block("counts", counts(&totals, pen)),
        Part::Block("findings", findings(&totals, pen)),
        Part::Block("changes", changes(world, pen)),
        Part::Block("ensemble", ensemble::draw(world, client)),
        Part::Block("health", health(client, &totals)),
    ];
    Drawn { title: "Overview".to_owned(), parts }
}

fn counts(totals: &Totals, pen: &Pen<'_>) -> Markup {
    let pages = [
        (ListPage::Locks, "locks"),
        (ListPage::Elections, "elections"),
        (ListPage::Services, "services"),
        (ListPage::Queues, "queues"),
        (ListPage::Config, "values"),
        (ListPage::Members, "groups"),
    ];
    let count =
        |page: ListPage| -> usize { page.kinds().iter().filter_map(|kind| totals.recipes.get(kind)).sum() };
    html! {
        section #counts .block {
            h2.visually-hidden { "Counts" }
            ul.counts {
                @for (page, noun) in pages {
                    li { a href={ (pen.base) "/" (page.name()) } { strong.number { (count(page)) } " " span { (noun) } } }
                }
            }
        }
    }
}

fn findings(totals: &Totals, pen: &Pen<'_>) -> Markup {
    let more = totals.findings.len().saturating_sub(MAX_FINDINGS);
    html! {
        section #findings .block {
            h2 { "Needs a look" }
            @if totals.findings.is_empty() { p.empty { "Nothing." } } @else {
                ul.findings {
                    @for finding in totals.findings.iter().take(MAX_FINDINGS) {
                        li.finding.is-bad[finding.kind.is_bad()].is-warning[!finding.kind.is_bad()] {
                            span.badge { (finding.kind.name().replace('_', " ")) } " " (pen.path(&finding.path)) " "
                            span { (finding.text) @if let Some(since) = finding.since { " since " (pen.age(since, false)) } }
                        }
                    }
                }
                @if more > 0 { p { "and " (more) " more" } }
            }
        }
    }
}

fn changes(world: &World, pen: &Pen<'_>) -> Markup {
    let changes = world.changes(MAX_CHANGES);
    html! {
        section #changes .block {
            h2 { "Recent changes" }
            @if changes.is_empty() { p.empty { "None since this console started." } } @else {
                ol.changes {
                    @for change in &changes {
                        li { (pen.age(change.at, false)) " " (pen.path(&change.path)) " " span { (change.text) } }
                    }
                }
            }
        }
    }
}

/// The connection of the console's client, and what the reports omit.
fn health(client: &Client, totals: &Totals) -> Markup {
    let health = client.health();
    let state = match health.connection.state {
        ConnectionState::Connected => "connected",
        ConnectionState::ReadOnly => "connected to a server without quorum: the pages may be out of date",
        ConnectionState::Suspended => "connection lost",
        ConnectionState::Lost => "session lost",
        _ => "closed",
    };
    let out = totals.left_out;
    html! {
        section #health .block {
            h2 { "This console" }
            dl.facts {
                div { dt { "Connection" } dd { (state) } }
                div { dt { "Session" } dd { @match client.session_id() { Some(id) => (format!("{id:#x}")), None => "none" } } }
                div { dt { "Lost connections" } dd { (health.connection.suspensions) } }
                @if let Some(error) = &health.last_error { div { dt { "Last error" } dd { (error) } } }
                @if !health.unsupported.is_empty() {
                    div { dt { "Not supported by the servers" } dd { (health.unsupported.join(", ")) } }
                }
                @if totals.refused > 0 {
                    div { dt { "Not readable" } dd { (counted(totals.refused, "node", "nodes")) } }
                }
                @if !out.is_empty() {
                    div { dt { "Omitted" } dd { "because of limits: " (out.nodes) " nodes, " (out.deep) " deep folders, data of " (out.data) " nodes" } }
                }
                @if totals.unwatched > 0 {
                    div { dt { "Polled" } dd { (counted(totals.unwatched, "node", "nodes")) " every few seconds, without a watch" } }
                }
            }
        }
    }
}
