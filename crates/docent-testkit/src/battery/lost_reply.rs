use super::arena::{Arena, LONG};
use super::cases::{Cases, Failure, ensure, soon};
use super::recipe::{Fault, Recipe};
use super::round::{Asked, LINES, Line, play, record};
use crate::{Rule, TestServer};
use std::pin::pin;

const FAULTS: [Fault; 4] = [Fault::ReplyLost, Fault::ResetBefore, Fault::ResetAfter, Fault::Expired];

/// Breaks the link at each request of acquire, verify and release, alone and behind a holder, in four ways: the reply is
/// swallowed and the link breaks later; it breaks before the request; after it; after it, and the session ends before there
/// is a new link.
///
/// Checked: acquire, verify and release succeed, or fail as [`Recipe::permits`] says; there is one node while it is held; one
/// place was taken in all, two when the session ended; the fence increases; nothing is left in the end, long before the
/// session could expire, and somebody else gets its turn.
///
/// # Panics
/// When a case failed, with all that did.
pub async fn lost_reply<R: Recipe>(recipe: &R, server: &TestServer) {
    let mut cases = Cases::new();
    for line in LINES {
        let asked = record(&Arena::new(recipe, server, LONG), line).await.expect("a round without faults");
        for asked in asked {
            for fault in FAULTS {
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
    let player = arena.player().await?;
    let session = player.session()?;
    let on = Rule::on(asked.op).nth(asked.nth);
    let rule = player.proxy.add(match fault {
        Fault::ResetBefore => on.reset_before(),
        Fault::ResetAfter => on.reset_after(),
        Fault::Expired => on.cut_after(),
        _ => on.swallow_reply(),
    });
    let mut breaking = pin!(async {
        rule.fired().await;
        match fault {
            Fault::ReplyLost => player.proxy.reset().await,
            Fault::Expired => {
                arena.server.expire(session).await.map_err(|error| error.to_string())?;
                player.proxy.heal().await.map_err(|error| error.to_string())?;
            }
            _ => {}
        }
        Ok::<_, Failure>(())
    });
    let mut broke = false;
    let played = {
        let mut round = pin!(play(&arena, &player, &other, line, Some(fault)));
        loop {
            tokio::select! {
                played = &mut round => break played,
                done = &mut breaking, if !broke => { done?; broke = true; }
            }
        }
    };
    if rule.has_fired() && !broke {
        soon("breaking the link", breaking).await??;
    }
    played?;
    if !rule.has_fired() {
        return Ok(false);
    }
    arena.is_free_for(&other).await?;
    let effects = arena.recipe.effects(&player.proxy.trace(), &arena.folder());
    let most = arena.recipe.nodes() * if fault == Fault::Expired { 2 } else { 1 };
    ensure(effects <= most, || format!("{effects} places were taken"))?;
    Ok(true)
}
