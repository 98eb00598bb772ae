use super::draw::{List, Rows};
use super::html::{Pen, row_id};
use crate::world::{short_text, shortened};
use docent::inspect::{Contender, Member, printable};
use docent::recipe::Role;
use maud::{Markup, html};

/// A contender, and what it is called.
pub(super) struct Place<'a> {
    pub(super) one: &'a Contender,
    /// Such as `holds` or `leads`.
    pub(super) role: &'static str,
    pub(super) is_front: bool,
    pub(super) can_be_asked: bool,
}

/// Draws contenders as the line in which they wait.
pub(super) fn line(path: &str, places: &[Place<'_>], from: usize, address: String, pen: &Pen<'_>) -> List {
    List::new(Rows::Line, places, from, address, |index, place| row(path, index, place, pen))
}

fn row(path: &str, index: usize, place: &Place<'_>, pen: &Pen<'_>) -> (String, Markup) {
    let one = place.one;
    let id = row_id(&one.name);
    let is_shared = one.role == Role::Shared;
    let row = html! {
        li id=(id) class={
            "contender"
            (if place.is_front { " is-holder" } else { " is-waiter" })
            (if is_shared { " is-shared" } else { " is-exclusive" })
            (if one.is_revoked { " is-revoked" } else { "" })
        } {
            span.place { (index + 1) }
            span.owner title=(printable(&one.name)) { (owner(one)) }
            span.role { (place.role) @if one.is_revoked { ", asked to leave" } }
            (pen.since(one.held.or(one.since)))
            (pen.session(one.session))
            span.actions {
                @if place.can_be_asked && !one.is_revoked { (pen.action("leave", path, &one.name, "Ask to leave")) " " }
                (pen.action("delete", path, &one.name, "Delete"))
            }
        }
    };
    (id, row)
}

fn owner(one: &Contender) -> String {
    if let Some(client) = &one.client {
        return shortened(&client.to_string());
    }
    match (one.identity.as_ref().filter(|text| !text.bytes().is_empty() && !one.is_revoked), one.session) {
        (Some(text), _) => short_text(text),
        (None, Some(session)) => format!("session {session:#x}"),
        (None, None) => "an unknown owner".to_owned(),
    }
}

/// Draws members of a group as rows.
pub(super) fn members(all: &[Member], from: usize, address: String, pen: &Pen<'_>) -> List {
    List::new(Rows::Table(&["Member", "Data", "Since", "Session"]), all, from, address, |_, member| {
        let id = row_id(&member.name);
        let data = member.data.as_ref().filter(|_| pen.shows_data).map(short_text);
        let row = html! {
            tr id=(id) {
                th scope="row" { (printable(&member.id)) }
                td data-label="Data" { (data.unwrap_or_default()) }
                td data-label="Since" { (pen.since(member.since)) }
                td data-label="Session" { (pen.session(member.session)) }
            }
        };
        (id, row)
    })
}
