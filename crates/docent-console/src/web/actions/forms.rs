use super::action::Action;
use super::apply::{ApplyError, apply};
use super::target::{Role, Target, TargetError, check, find};
use crate::access::Visitor;
use crate::console::Inner;
use crate::pages::{Pen, at, message};
use crate::web::answer::{busy, page, say, status};
use crate::web::routes::Shared;
use crate::world::owner_of;
use axum::Form;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use docent::inspect::{Stake, printable};
use docent::recipe::proofs_below;
use http::{HeaderMap, StatusCode};
use maud::html;
use serde::Deserialize;
use std::sync::Arc;

/// What a person wants to do, as in the address of the question.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    #[serde(rename = "do")]
    action: Action,
    /// Path of the recipe.
    path: String,
    /// Name of the contender, item, instance or dead letter; the transaction of an earlier value.
    node: String,
}

/// The answer to the question.
#[derive(Debug, Deserialize)]
pub(crate) struct Confirmed {
    #[serde(flatten)]
    wanted: Wanted,
    /// Transaction that created the node which was shown.
    czxid: String,
    /// Transaction that last changed it.
    mzxid: String,
    csrf: String,
}

/// Asks whether to change exactly this node.
pub(in crate::web) async fn ask(
    State(inner): Shared,
    visitor: Visitor,
    Query(wanted): Query<Wanted>,
) -> Response {
    if let Some(refusal) = refusal(&inner, &visitor) {
        return refusal;
    }
    let Some(_permit) = inner.read_permit().await else { return busy(&inner, &visitor) };
    match find(&inner, wanted.action, &wanted.path, &wanted.node).await {
        Ok(target) => question(&inner, &visitor, &wanted, &target),
        Err(error) => not_found(&inner, &visitor, &error),
    }
}

/// Changes the node if it is still the one that was shown.
pub(in crate::web) async fn act(
    State(inner): Shared,
    visitor: Visitor,
    headers: HeaderMap,
    Form(confirmed): Form<Confirmed>,
) -> Response {
    let refused = match visitor.check(&headers, &confirmed.csrf) {
        Err(refused) => Some((refused.to_string(), refused.into_response())),
        Ok(()) => refusal(&inner, &visitor).map(|answer| ("actions are not allowed".to_owned(), answer)),
    };
    if let Some((reason, answer)) = refused {
        let Wanted { action, path, .. } = &confirmed.wanted;
        // Event: A request for an action was refused before anything was read or changed: it came from
        // another site, its form had expired, or actions are not allowed.
        // Action: If the user did not send it, find out which site or program did.
        tracing::warn!(target: "docent::console", client = %inner.client.label(), user = %visitor.user, action = action.name(), path = %printable(path), %reason, "action refused");
        return answer;
    }
    // A browser that leaves must not stop an action halfway.
    let work = tokio::spawn(async move { change(&inner, &visitor, &confirmed).await });
    work.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

async fn change(inner: &Arc<Inner>, visitor: &Visitor, confirmed: &Confirmed) -> Response {
    let Wanted { action, path, .. } = &confirmed.wanted;
    match try_change(inner, confirmed).await {
        Ok(changed) => {
            // Event: A user of the console has changed something. The fields are the user, the action and the
            // path.
            tracing::info!(target: "docent::console", client = %inner.client.label(), user = %visitor.user, action = action.name(), path = %changed, "action applied");
            Redirect::to(&inner.pen().at(path)).into_response()
        }
        Err(error) => {
            // Event: An action of a user of the console failed: nothing was changed, or the outcome is
            // unknown.
            // Action: Load the page again and check what it shows. The field `error` has the reason.
            tracing::warn!(target: "docent::console", client = %inner.client.label(), user = %visitor.user, action = action.name(), path = %printable(path), error = %error, "action failed");
            let text = html! {
                p.error role="alert" { (error.to_string()) }
                p { a href=(inner.pen().at(path)) { "Back to " (printable(path)) } }
            };
            say(inner, visitor, code(&error), "The action failed", &text)
        }
    }
}

/// Changes the node if it is still the one that was shown, and returns its path.
async fn try_change(inner: &Inner, confirmed: &Confirmed) -> Result<String, ApplyError> {
    let Wanted { action, path, node } = &confirmed.wanted;
    let _permit = inner.read_permit().await.ok_or(ApplyError::Busy)?;
    check(inner, path, node)?;
    inner.client.sync(path).await?;
    // Their names are unique. So if they are read before the claim is compared with the one that was shown,
    // another claim of the item is not deleted with them. Only Docent's queues have any.
    let proofs = match action {
        Action::Delete => {
            let item = format!("{}/items/{node}", path.trim_end_matches('/'));
            proofs_below(&inner.client, &item).await?
        }
        _ => Vec::new(),
    };
    let target = find(inner, *action, path, node).await?;
    let seen = (target.stat.czxid.to_string(), target.stat.mzxid.to_string());
    if (&seen.0, &seen.1) != (&confirmed.czxid, &confirmed.mzxid) {
        return Err(ApplyError::Changed);
    }
    apply(inner, *action, path, node, &target, &proofs).await?;
    Ok(target.path)
}

fn code(error: &ApplyError) -> StatusCode {
    match error {
        ApplyError::Changed => StatusCode::CONFLICT,
        ApplyError::Busy => StatusCode::SERVICE_UNAVAILABLE,
        ApplyError::Unsuitable(_) => StatusCode::BAD_REQUEST,
        ApplyError::Unknown => StatusCode::BAD_GATEWAY,
        ApplyError::Client(error) => status(error),
        ApplyError::Target(error) => target_code(error),
    }
}

fn target_code(error: &TargetError) -> StatusCode {
    match error {
        _ if error.is_gone() => StatusCode::CONFLICT,
        TargetError::Client(error) => status(error),
        _ => StatusCode::BAD_REQUEST,
    }
}

fn question(inner: &Inner, visitor: &Visitor, wanted: &Wanted, target: &Target) -> Response {
    let (pen, action) = (inner.pen(), wanted.action);
    let owner = owner(inner, wanted, target);
    let text = html! {
        form.confirm method="post" action={ (pen.base) "/act" } {
            p { code { (printable(&target.path)) } @if action == Action::Rollback { ", value of transaction " (printable(&wanted.node)) } }
            dl.facts {
                @if let Some(owner) = owner { div { dt { "Owner" } dd { (owner) } } }
                @if let Some(session) = target.stat.owner { div { dt { "Session" } dd { (format!("{session:#x}")) } } }
                div { dt { "Created" } dd { (pen.moment(target.stat.created)) } }
                div { dt { "Version" } dd { (target.stat.version) } }
            }
            p { (action.effect(&target.role)) }
            input type="hidden" name="do" value=(action.name());
            input type="hidden" name="path" value=(wanted.path);
            input type="hidden" name="node" value=(wanted.node);
            input type="hidden" name="czxid" value=(target.stat.czxid);
            input type="hidden" name="mzxid" value=(target.stat.mzxid);
            input type="hidden" name="csrf" value=(visitor.csrf);
            button.danger { (action.button()) }
            " "
            a.cancel href={ (pen.base) (at(&wanted.path)) } { "Cancel" }
        }
    };
    page(inner, visitor, StatusCode::OK, &message(action.question(), &text))
}

/// Returns who owns the contender or claim, unless the report is about an earlier node of the same name.
fn owner(inner: &Inner, wanted: &Wanted, target: &Target) -> Option<String> {
    let (report, stat) = (inner.world.report(&wanted.path)?, &target.stat);
    let is_target = |stake: &Stake<'_>| {
        let is_same = stake.since.is_none_or(|since| since.at == stat.created) && stake.session == stat.owner;
        // The rule of an instance in Dubbo's layout is another node.
        (is_same || target.role == Role::Rule) && stake.name == wanted.node
    };
    report.stakes().iter().find(|stake| is_target(stake)).map(|stake| owner_of(stake, inner.pen().shows_data))
}

/// Returns the answer if actions are not allowed.
fn refusal(inner: &Inner, visitor: &Visitor) -> Option<Response> {
    let Pen { allows_actions, .. } = inner.pen();
    let text = html! { p { "This console only shows. Start it with " code { "--allow-actions" } " to change anything." } };
    (!allows_actions).then(|| say(inner, visitor, StatusCode::FORBIDDEN, "Actions are not allowed", &text))
}

fn not_found(inner: &Inner, visitor: &Visitor, error: &TargetError) -> Response {
    let text = html! { p.error role="alert" { (error.to_string()) } };
    say(inner, visitor, target_code(error), "Nothing was changed", &text)
}
