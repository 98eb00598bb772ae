use super::time::age;
use docent::inspect::{Claim, Contender, NodeText, Report, Since};

/// Describes the owner of a contender: host and process if its node has them, otherwise the node's data,
/// otherwise the session.
pub(super) fn identity(contender: &Contender) -> String {
    match &contender.client {
        Some(client) => client.to_string(),
        None => owner(contender.identity.as_ref(), contender.session),
    }
}

/// Describes an owner by the data of its node, or by its session if there is no data.
pub(super) fn owner(data: Option<&NodeText>, session: Option<i64>) -> String {
    match (data.filter(|data| !data.bytes().is_empty()), session) {
        (Some(data), _) => data.to_string(),
        (None, Some(session)) => format!("session {session:#x}"),
        (None, None) => "an unknown owner".to_owned(),
    }
}

/// Describes a contender in a queue: its owner, how long its node has existed, and whether it was asked to
/// leave. How long it has held is unknown before its first heartbeat, and how long it waited is unknown after
/// that.
pub(crate) fn describe_contender(contender: &Contender) -> String {
    let revoked = if contender.is_revoked { ", asked to leave" } else { "" };
    format!("{}{}{revoked}", identity(contender), present_for(contender.since))
}

/// Describes the claim of an item: its owner, and how long the claim has existed.
pub(crate) fn describe_claim(claim: &Claim) -> String {
    format!("{}{}", owner(claim.identity.as_ref(), claim.session), present_for(claim.since))
}

fn present_for(since: Option<Since>) -> String {
    since.map(|since| format!(", present for {}", age(Some(since)))).unwrap_or_default()
}

/// Returns the owner of a recipe, with the number of further ones, or `None` if it has none.
pub(super) fn owner_of(report: &Report) -> Option<String> {
    let owners: Vec<_> = report.stakes().into_iter().filter(|stake| stake.role.is_owner()).collect();
    let (first, others) = owners.split_first()?;
    Some(match others.len() {
        0 => first.owner(),
        more => format!("{} and {more} more", first.owner()),
    })
}
