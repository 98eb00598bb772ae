use super::draw::{Drawn, List, Part, Rows, WINDOW};
use super::html::{Pen, milliseconds};
use crate::access::Visitor;
use crate::world::{Link, World};
use maud::{DOCTYPE, Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::SystemTime;

/// Pages in the navigation, with their titles and the keys that lead there.
const PAGES: [(&str, &str, &str); 9] = [
    ("overview", "Overview", "o"),
    ("locks", "Locks", "l"),
    ("elections", "Elections", "e"),
    ("services", "Services", "s"),
    ("queues", "Queues", "q"),
    ("config", "Configuration", "c"),
    ("members", "Membership", "m"),
    ("sessions", "Sessions", "n"),
    ("tree", "Tree", "t"),
];

/// What surrounds the content of a page.
pub(crate) struct Frame<'a> {
    pub(crate) page: &'a str,
    pub(crate) pen: Pen<'a>,
    pub(crate) visitor: &'a Visitor,
    /// Path and query with which the browser asks for events; `None` for a page that is not live.
    pub(crate) events: Option<String>,
}

/// Returns the document of a page.
pub(crate) fn document(world: &World, frame: &Frame<'_>, drawn: &Drawn) -> Markup {
    let base = frame.pen.base;
    let events = frame
        .events
        .as_ref()
        .map(|address| format!("{base}/events?view={}", utf8_percent_encode(address, NON_ALPHANUMERIC)));
    html! {
        (DOCTYPE)
        html lang="en" data-page=(frame.page) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (drawn.title) " \u{b7} Docent" }
                link rel="icon" href={ (base) "/assets/icon.svg" };
                link rel="stylesheet" href={ (base) "/assets/console.css" };
                script src={ (base) "/assets/console.js" } defer {}
            }
            body data-base=(base) data-events=[events] data-now=(milliseconds(frame.pen.now.unwrap_or_else(SystemTime::now))) {
                a.skip href="#main" { "Skip to content" }
                header {
                    a.brand href=(address(base, "overview")) { "Docent" }
                    nav aria-label="Pages" {
                        @for (page, title, _) in PAGES {
                            a href=(address(base, page)) aria-current=[(page == frame.page).then_some("page")] { (title) }
                        }
                    }
                    form role="search" action={ (base) "/search" } {
                        label.visually-hidden for="search" { "Search paths and owners" }
                        input #search type="search" name="q" placeholder="Search  /";
                    }
                    @if frame.events.is_some() { (connection(world, &frame.pen)) }
                    (sign_out(base, frame.visitor))
                }
                main #main tabindex="-1" {
                    h1 { (drawn.title) }
                    @for part in &drawn.parts {
                        @match part {
                            Part::Block(_, block) => (block),
                            Part::List(rows) => (list(base, rows)),
                        }
                    }
                }
                (keys())
            }
        }
    }
}

/// A page with a message, such as an error.
pub(crate) fn message(title: &str, text: &Markup) -> Drawn {
    let block = html! { section #message .block { (text) } };
    Drawn { title: title.to_owned(), parts: vec![Part::Block("message", block)] }
}

/// Whether the page shows the present.
pub(crate) fn connection(world: &World, pen: &Pen<'_>) -> Markup {
    let (link, failure) = world.link();
    html! {
        @match link {
            Link::Reading => p #connection .connection.is-stale role="status" { "Reading\u{2026}" },
            Link::Current => p #connection .connection.is-current role="status" { "Live" },
            Link::ReadOnly => p #connection .connection.is-stale role="status" { "Read-only server" },
            Link::Closed => p #connection .connection.is-stale role="status" data-state="closed" { "Closed" },
            Link::Stale(since) => {
                p #connection .connection.is-stale role="status" title=[failure] { "Stale since " (pen.age(since, false)) }
            }
        }
    }
}

fn address(base: &str, page: &str) -> String {
    // A mounted router answers at its base, and not always with a slash behind it.
    if page == "overview" {
        if base.is_empty() { "/".to_owned() } else { base.to_owned() }
    } else {
        format!("{base}/{page}")
    }
}

fn sign_out(base: &str, visitor: &Visitor) -> Markup {
    html! {
        @if visitor.is_signed_in {
            form.sign-out method="post" action={ (base) "/sign-out" } {
                input type="hidden" name="csrf" value=(visitor.csrf);
                button { "Sign out" }
            }
        }
    }
}

/// The element of a list, with links to other windows for browsers without script.
fn list(base: &str, list: &List) -> Markup {
    let page = |from: usize| format!("{base}{}from={from}", list.address);
    let (before, after) = (list.from.saturating_sub(WINDOW), list.from + WINDOW);
    html! {
        @match list.rows {
            Rows::Table(columns) => table.list {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody #rows data-total=(list.total) data-from=(list.from) { @for (_, row) in &list.window { (row) } }
            },
            Rows::Line => ol #rows .line data-total=(list.total) data-from=(list.from) { @for (_, row) in &list.window { (row) } },
        }
        @if list.total > WINDOW {
            nav.pages aria-label="Rows" {
                @if list.from > 0 { a rel="prev" href=(page(before)) { "Previous rows" } }
                span { (list.from + 1) "\u{2013}" (list.from + list.window.len()) " of " (list.total) }
                @if after < list.total { a rel="next" href=(page(after)) { "Next rows" } }
            }
        }
    }
}

fn keys() -> Markup {
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keys" }
            dl.keys {
                div { dt { kbd { "/" } } dd { "Search" } }
                div { dt { kbd { "j" } " " kbd { "k" } } dd { "Next and previous row" } }
                @for (_, title, key) in PAGES {
                    div { dt { kbd { "g" } " " kbd { (key) } } dd { (title) } }
                }
                div { dt { kbd { "?" } } dd { "These keys" } }
            }
            form method="dialog" { button { "Close" } }
        }
    }
}
