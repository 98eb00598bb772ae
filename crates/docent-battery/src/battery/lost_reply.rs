use super::arena::{Arena, LONG};
use super::asked::{Asked, BREAKS, Break};
use super::cases::{Cases, Failure, ensure, soon};
use super::recipe::{Fault, Recipe};
use super::round::{LINES, Line, play, record};
use crate::TestServer;
use std::pin::pin;

/// Breaks the link at each request of acquire, verify and release, alone and behind a holder, in four ways:
/// the reply is swallowed and the link breaks later; it breaks before the request; after it; after it, and
/// the session ends before there is a new link.
///
/// Checked: acquire, verify and release succeed, or fail as [`Recipe::permits`] says; there is one node while
/// it is held; one place was taken in all, two when the session ended; the fence increases; nothing is left
/// in the end, long before the session could expire, and somebody else gets its turn.
///
/// # Panics
/// When a case failed, with all that did.
pub async fn lost_reply<R: Recipe>(recipe: &R, server: &TestServer) {
    let mut cases = Cases::new();
    for line in LINES {
        let asked = record(&Arena::new(recipe, server, LONG), line).await.expect("a round without faults");
        for asked in asked {
            for fault in BREAKS {
                cases.add_request(format!("{line:?} line, {asked}, {fault:?}"), move || {
                    broken(Arena::new(recipe, server, LONG), line, asked, fault)
                });
            }
        }
    }
    cases.run("lost replies").await;
}

/// True when the request was sent, and the link broke.
async fn broken<R: Recipe>(
    arena: Arena<'_, R>,
    line: Line,
    asked: Asked,
    fault: Fault,
) -> Result<bool, Failure> {
    let other = arena.other().await?;
    let proxied = arena.proxied().await?;
    let session = proxied.session()?;
    let link = Break::at(asked, fault, arena.server, &proxied.proxy, session);
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
    ensure(effects <= most, || format!("{effects} places were taken"))?;
    Ok(true)
}
