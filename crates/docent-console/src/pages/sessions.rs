use super::draw::{Drawn, List, Part, Rows};
use super::filter::Filter;
use super::html::{Pen, counted, row_id};
use crate::world::{World, owner_of, shortened};
use docent::inspect::{Report, SessionReport, StakeRole, printable};
use maud::{Markup, html};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

/// A session, and its parts in recipes.
struct Session {
    id: i64,
    owner: String,
    /// Whether `owner` is how the client identifies itself, rather than the text of a node.
    is_identified: bool,
    oldest: Option<SystemTime>,
    /// Role and path of each part.
    parts: Vec<(StakeRole, Arc<Report>)>,
}

/// Draws the sessions by what they own and await.
pub(super) fn draw(world: &World, filter: &Filter, pen: &Pen<'_>) -> Drawn {
    let sessions = sessions(world, filter, pen);
    let rows = Rows::Table(&["Session", "Client", "Oldest", "Nodes", "Recipes"]);
    let address = format!("/sessions?{}", filter.query());
    let list = List::new(rows, &sessions, filter.from, address, |_, session| row(session, pen));
    let form = html! {
        section #filters .block {
            form.filters action={ (pen.base) "/sessions" } {
                label { "Text " input name="q" value=(filter.q); }
                button { "Apply" }
            }
            p { "Sessions that have a part in a recipe. The servers delete the nodes of a session when it ends. " a href={ (pen.base) "/sessions/nodes?" (filter.query()) } { "All nodes of all sessions" } }
        }
    };
    let summary = html! { p #summary .summary { (counted(sessions.len(), "session", "sessions")) } };
    let parts = vec![Part::Block("filters", form), Part::Block("summary", summary), Part::List(list)];
    Drawn { title: "Sessions".to_owned(), parts }
}

fn sessions(world: &World, filter: &Filter, pen: &Pen<'_>) -> Vec<Session> {
    let mut sessions = BTreeMap::<i64, Session>::new();
    for report in world.select(|_| true) {
        for stake in report.stakes() {
            let Some(id) = stake.session else { continue };
            let (owner, is_identified) = (owner_of(&stake, pen.shows_data), stake.client.is_some());
            let new = || Session { id, owner: owner.clone(), is_identified, oldest: None, parts: Vec::new() };
            let session = sessions.entry(id).or_insert_with(new);
            if is_identified && !session.is_identified {
                (session.owner, session.is_identified) = (owner, true);
            }
            let since = stake.since.map(|since| since.at);
            session.oldest = session.oldest.into_iter().chain(since).min();
            session.parts.push((stake.role, Arc::clone(&report)));
        }
    }
    let wanted = &*filter.q;
    let finds = |session: &Session| {
        wanted.is_empty()
            || format!("{:#x}", session.id).contains(wanted)
            || session.owner.to_lowercase().contains(wanted)
            || session.parts.iter().any(|(_, report)| report.path.to_lowercase().contains(wanted))
    };
    sessions.into_values().filter(finds).collect()
}

/// Draws the sessions with all of their nodes, also those that belong to no recipe.
pub(crate) fn sessions_page(sessions: &[SessionReport], filter: &Filter, pen: &Pen<'_>) -> Drawn {
    /// Maximum number of sessions to show.
    const SESSIONS: usize = 200;
    /// Maximum number of nodes to show of each.
    const NODES: usize = 50;
    let wanted = &*filter.q;
    let has = |text: &str| text.to_lowercase().contains(wanted);
    let finds = |session: &&SessionReport| {
        wanted.is_empty()
            || format!("{:#x}", session.session).contains(wanted)
            || has(&session.owner())
            || session.nodes.iter().any(|node| has(&node.path))
    };
    let found: Vec<_> = sessions.iter().filter(finds).collect();
    let block = html! {
        section #nodes .block {
            form.filters action={ (pen.base) "/sessions/nodes" } {
                label { "Text " input name="q" value=(filter.q); }
                button { "Apply" }
            }
            p { (counted(found.len(), "session", "sessions")) " with nodes, as they were when the page was loaded." }
            @for session in found.iter().take(SESSIONS) {
                h2 { (pen.session(Some(session.session))) " " (shortened(&session.owner())) }
                ul.children {
                    @for node in session.nodes.iter().take(NODES) {
                        li {
                            (node.role.name()) " " a.path href=(pen.at(&node.path)) { (printable(&node.path)) } " "
                            (pen.since(Some(node.since)))
                        }
                    }
                }
                @if session.nodes.len() > NODES { p { "and " (session.nodes.len() - NODES) " more" } }
            }
            @if found.len() > SESSIONS { p { "and " (counted(found.len() - SESSIONS, "more session", "more sessions")) } }
        }
    };
    Drawn { title: "Nodes of sessions".to_owned(), parts: vec![Part::Block("nodes", block)] }
}

fn row(session: &Session, pen: &Pen<'_>) -> (String, Markup) {
    /// Maximum number of recipes in a row.
    const SHOWN: usize = 3;
    let id = row_id(session.id);
    let more = session.parts.len().saturating_sub(SHOWN);
    let row = html! {
        tr id=(id) {
            th scope="row" { a.path href={ (pen.base) "/sessions?q=" (format!("{:#x}", session.id)) } { (format!("{:#x}", session.id)) } }
            td data-label="Client" { (session.owner) }
            td data-label="Oldest" { @if let Some(oldest) = session.oldest { (pen.age(oldest, false)) } }
            td data-label="Nodes" { (session.parts.len()) }
            td data-label="Recipes" {
                @for (index, (role, report)) in session.parts.iter().take(SHOWN).enumerate() {
                    @if index > 0 { ", " } (role.name()) " " (pen.path(&report.path))
                }
                @if more > 0 { " and " (more) " more" }
            }
        }
    };
    (id, row)
}
