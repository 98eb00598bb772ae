use super::time::age;
use docent::inspect::{Claim, Contender, NodeText, Since};

/// Text about the owner of a node: host and process where it tells them, else its data as it is, else the
/// session.
pub(super) fn identity(contender: &Contender) -> String {
    match &contender.client {
        Some(client) => client.to_string(),
        None => owner(contender.identity.as_ref(), contender.session),
    }
}

/// Text about an owner by the data of its node or, where that says nothing, by its session.
pub(super) fn owner(data: Option<&NodeText>, session: Option<i64>) -> String {
    match (data.filter(|data| !data.bytes().is_empty()), session) {
        (Some(data), _) => data.to_string(),
        (None, Some(session)) => format!("session {session:#x}"),
        (None, None) => "somebody unknown".to_owned(),
    }
}

/// Text about a contender in a line: its owner, for how long it has been there, and whether it was asked to
/// leave. How long it holds is not known before its first heartbeat, and how long it waited not after.
pub(crate) fn introduced(contender: &Contender) -> String {
    let asked = if contender.is_revoked { ", asked to leave" } else { "" };
    format!("{}{}{asked}", identity(contender), there(contender.since))
}

/// Text about the claim of an item: its owner, and for how long it has been there.
pub(crate) fn introduced_claim(claim: &Claim) -> String {
    format!("{}{}", owner(claim.identity.as_ref(), claim.session), there(claim.since))
}

fn there(since: Option<Since>) -> String {
    since.map(|since| format!(", there for {}", age(Some(since)))).unwrap_or_default()
}
