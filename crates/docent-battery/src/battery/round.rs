//! One round of a contender: acquire, verify, release.

use super::arena::{Arena, LONG, ProxiedContender};
use super::cases::{Failure, PROMPT, ensure, longest_pause, soon};
use super::recipe::{Contender, Fault, Recipe, Step};
use super::round_request::RoundRequest;
use docent_core::Released;
use std::fmt;
use tokio::time::Instant;

/// State of the line when a contender joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// There is no holder.
    Free,
    /// There is a holder, which leaves when the contender waits.
    Taken,
}

pub(super) const LINES: [Line; 2] = [Line::Free, Line::Taken];

/// Returns the requests that every round without a fault sends, in order. These are the requests that two
/// rounds have in common, because a slow round has additional requests, such as another heartbeat.
pub(super) async fn record<R: Recipe>(
    arena: &Arena<'_, R>,
    line: Line,
) -> Result<Vec<RoundRequest>, Failure> {
    let mut request = record_one(arena, line).await?;
    // A new arena, so no node exists yet, as in the first round.
    let again = record_one(&Arena::new(arena.recipe, arena.server, LONG), line).await?;
    request.retain(|request| again.contains(request));
    Ok(request)
}

async fn record_one<R: Recipe>(arena: &Arena<'_, R>, line: Line) -> Result<Vec<RoundRequest>, Failure> {
    let other = arena.other().await?;
    let proxied = arena.proxied().await?;
    play(arena, &proxied, &other, line, None).await?;
    Ok(RoundRequest::all(&proxied.proxy.trace()[proxied.before..]))
}

/// Plays a round, and checks the guarantees that must hold under any fault.
pub(super) async fn play<R: Recipe>(
    arena: &Arena<'_, R>,
    proxied: &ProxiedContender<R>,
    other: &R::Contender,
    line: Line,
    fault: Option<Fault>,
) -> Result<(), Failure> {
    let (recipe, contender) = (arena.recipe, &proxied.contender);
    let judge = |step, result: Result<(), <R::Contender as Contender>::Error>| match result {
        Err(error) if !fault.is_some_and(|fault| recipe.permits(step, fault, &error)) => {
            Err(format!("{step:?} failed: {error:?}"))
        }
        result => Ok(result.is_ok()),
    };
    let (acquired, before) = match line {
        Line::Free => (soon("acquire", contender.acquire()).await?, None),
        Line::Taken => {
            let (acquired, fence) = behind(arena, proxied, other).await?;
            (acquired, fence)
        }
    };
    let held = match acquired {
        Ok(held) => held,
        Err(error) => return judge(Step::Acquire, Err(error)).map(drop),
    };
    let fence = contender.fence(&held);
    ensure(before.is_none() || before < fence, || format!("the fence changed from {before:?} to {fence:?}"))?;
    let nodes = arena.nodes().await?;
    let all = recipe.nodes();
    ensure(nodes.len() <= all, || format!("the folder contains more nodes than the holder's: {nodes:?}"))?;
    let expires = fault == Some(Fault::Expired);
    if nodes.len() < all && expires {
        learns_of_its_loss(contender, &held).await?;
    }
    let is_held = contender.is_held(&held);
    ensure(!is_held || nodes.len() == all, || format!("the guard is held with only {nodes:?}"))?;
    ensure(is_held || expires, || "the hold was lost although its session lives".to_owned())?;
    let verified = judge(Step::Verify, soon("verify", contender.verify(&held)).await?)?;
    let is_held = contender.is_held(&held);
    ensure(is_held || expires, || "the hold was lost although its session lives".to_owned())?;
    ensure(verified || !is_held, || "verify failed, but the guard is still held".to_owned())?;
    let result = soon("release", contender.release(held)).await?;
    let is_done = matches!(result, Ok(Released::Done));
    judge(Step::Release, result.map(drop))?;
    if fault.is_none() {
        ensure(is_done, || "the release is pending without a fault".to_owned())?;
        ensure(arena.nodes().await?.is_empty(), || "the node still exists after the release".to_owned())?;
    }
    Ok(())
}

/// Checks that a hold ended from outside is known to be lost as soon as the client is connected again, long
/// before the lease ends.
async fn learns_of_its_loss<C: Contender>(contender: &C, held: &C::Held) -> Result<(), Failure> {
    let start = Instant::now();
    let (lost, pause) = longest_pause(soon("the loss", contender.lost(held))).await;
    lost?;
    ensure(start.elapsed() < PROMPT + pause, || format!("loss known only after {:?}", start.elapsed()))
}

type Acquired<C> = (Result<<C as Contender>::Held, <C as Contender>::Error>, Option<<C as Contender>::Fence>);

/// Acquires behind `other`, which releases when the contender waits.
async fn behind<R: Recipe>(
    arena: &Arena<'_, R>,
    proxied: &ProxiedContender<R>,
    other: &R::Contender,
) -> Result<Acquired<R::Contender>, Failure> {
    let held = take(other).await?;
    let fence = other.fence(&held);
    let leave = async {
        proxied.waits(arena.recipe).await;
        ensure(other.is_held(&held), || "the holder lost its hold before it released".to_owned())?;
        released(other.release(held).await).map_err(|failure| format!("the holder cannot release: {failure}"))
    };
    let both = async { tokio::join!(proxied.contender.acquire(), leave) };
    let (acquired, released) = soon("the acquire behind another contender", both).await?;
    released.map(|()| (acquired, fence))
}

/// Acquires while there is no holder.
pub(super) async fn take<C: Contender>(contender: &C) -> Result<C::Held, Failure> {
    soon("acquire", contender.acquire()).await?.map_err(|error| format!("cannot acquire: {error:?}"))
}

/// Releases a hold.
pub(super) async fn leave<C: Contender>(contender: &C, held: C::Held) -> Result<(), Failure> {
    released(soon("release", contender.release(held)).await?)
        .map_err(|failure| format!("cannot release: {failure}"))
}

/// Checks that a release is done.
pub(super) fn released<E: fmt::Debug>(result: Result<Released, E>) -> Result<(), Failure> {
    match result {
        Ok(Released::Done) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
