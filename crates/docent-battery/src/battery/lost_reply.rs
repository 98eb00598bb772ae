use super::arena::{Arena, LONG};
use super::cases::{Cases, Failure, ensure, soon};
use super::recipe::{Fault, Recipe};
use super::round::{LINES, Line, play, record};
use super::round_request::{BREAKS, Break, RoundRequest};
use crate::TestServer;
use std::pin::pin;

/// Breaks the link at each request of acquire, verify and release, alone and behind a holder, in four ways:
/// the reply is swallowed and the link breaks later; the link breaks before the request; after the request;
/// after the request, and the session ends before there is a new link.
///
/// The battery checks that
///
/// - acquire, verify and release succeed, or fail with an error that [`Recipe::permits`];
/// - one node exists while the guard is held;
/// - one place was taken in all, or two if the session ended;
/// - the fence increases;
/// - nothing is left in the end, long before the session could expire, and another contender gets its turn.
///
/// # Panics
///
/// Panics with the list of all failed cases.
pub async fn lost_reply<R: Recipe>(recipe: &R, server: &TestServer) {
    let mut cases = Cases::new();
    for line in LINES {
        let request = record(&Arena::new(recipe, server, LONG), line).await.expect("a round without faults");
        for request in request {
            for fault in BREAKS {
                cases.add_request(format!("{line:?} line, {request}, {fault:?}"), move || {
                    broken(Arena::new(recipe, server, LONG), line, request, fault)
                });
            }
        }
    }
    cases.run("lost replies").await;
}

/// Returns true if the request was sent and the link broke.
async fn broken<R: Recipe>(
    arena: Arena<'_, R>,
    line: Line,
    request: RoundRequest,
    fault: Fault,
) -> Result<bool, Failure> {
    let other = arena.other().await?;
    let proxied = arena.proxied().await?;
    let session = proxied.session()?;
    let link = Break::at(request, fault, arena.server, &proxied.proxy, session);
    let mut breaking = pin!(link.done());
    let mut broke = false;
    let played = {
        let mut round = pin!(play(&arena, &proxied, &other, line, Some(fault)));
        loop {
            tokio::select! {
                played = &mut round => break played,
                done = &mut breaking, if !broke => { done?; broke = true; }
            }
        }
    };
    if link.has_begun() && !broke {
        soon("breaking the link", breaking).await??;
    }
    played?;
    if !link.has_begun() {
        return Ok(false);
    }
    arena.is_free_for(&other).await?;
    let effects = arena.recipe.effects(&proxied.proxy.trace(), &arena.folder());
    let most = arena.recipe.nodes() * if fault == Fault::Expired { 2 } else { 1 };
    ensure(effects <= most, || format!("the contender took {effects} places, more than {most}"))?;
    Ok(true)
}
