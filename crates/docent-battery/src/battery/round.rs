//! One round of a contender: acquire, verify, release.

use super::arena::{Arena, LONG, ProxiedContender};
use super::asked::Asked;
use super::cases::{Failure, PROMPT, ensure, longest_pause, soon};
use super::recipe::{Contender, Fault, Recipe, Step};
use tokio::time::Instant;

/// State of the line that a contender finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// Nobody holds.
    Free,
    /// A holder stands in it, which leaves when the contender waits.
    Taken,
}

pub(super) const LINES: [Line; 2] = [Line::Free, Line::Taken];

/// The requests of every round without a fault, in their order: those that two rounds have in common, because
/// a slow one has some of its own, such as a heartbeat more.
pub(super) async fn record<R: Recipe>(arena: &Arena<'_, R>, line: Line) -> Result<Vec<Asked>, Failure> {
    let mut asked = record_one(arena, line).await?;
    // As for the first round: no node is there yet.
    let again = record_one(&Arena::new(arena.recipe, arena.server, LONG), line).await?;
    asked.retain(|asked| again.contains(asked));
    Ok(asked)
}

async fn record_one<R: Recipe>(arena: &Arena<'_, R>, line: Line) -> Result<Vec<Asked>, Failure> {
    let other = arena.other().await?;
    let proxied = arena.proxied().await?;
    play(arena, &proxied, &other, line, None).await?;
    Ok(Asked::all(&proxied.proxy.trace()[proxied.before..]))
}

/// Plays a round, and checks that it keeps its promises under any fault.
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
    ensure(before.is_none() || before < fence, || format!("the fence went from {before:?} to {fence:?}"))?;
    let nodes = arena.nodes().await?;
    let all = recipe.nodes();
    ensure(nodes.len() <= all, || format!("there is more than is the holder's: {nodes:?}"))?;
    let expires = fault == Some(Fault::Expired);
    if nodes.len() < all && expires {
        learns_of_its_loss(contender, &held).await?;
    }
    let is_held = contender.is_held(&held);
    ensure(!is_held || nodes.len() == all, || format!("it says that it holds, and has only {nodes:?}"))?;
    ensure(is_held || expires, || "it was lost although its session lives".to_owned())?;
    let verified = judge(Step::Verify, soon("verify", contender.verify(&held)).await?)?;
    let is_held = contender.is_held(&held);
    ensure(is_held || expires, || "it was lost although its session lives".to_owned())?;
    ensure(verified || !is_held, || "verify failed, and it still says that it holds".to_owned())?;
    judge(Step::Release, soon("release", contender.release(held)).await?)?;
    if fault.is_none() {
        ensure(arena.nodes().await?.is_empty(), || "its node is there after the release".to_owned())?;
    }
    Ok(())
}

/// Checks that a hold which somebody else ended is known to be lost as soon as there is a link again, long
/// before its lease is over.
async fn learns_of_its_loss<C: Contender>(contender: &C, held: &C::Held) -> Result<(), Failure> {
    let start = Instant::now();
    let (lost, pause) = longest_pause(soon("the loss", contender.lost(held))).await;
    lost?;
    ensure(start.elapsed() < PROMPT + pause, || format!("it knew after {:?}", start.elapsed()))
}

type Acquired<C> = (Result<<C as Contender>::Held, <C as Contender>::Error>, Option<<C as Contender>::Fence>);

/// Acquires behind `other`, which leaves when the contender waits.
async fn behind<R: Recipe>(
    arena: &Arena<'_, R>,
    proxied: &ProxiedContender<R>,
    other: &R::Contender,
) -> Result<Acquired<R::Contender>, Failure> {
    let held = take(other).await?;
    let fence = other.fence(&held);
    let leave = async {
        proxied.waits(arena.recipe).await;
        ensure(other.is_held(&held), || "the holder lost it before it left".to_owned())?;
        other.release(held).await.map_err(|error| format!("the holder cannot release: {error:?}"))
    };
    let both = async { tokio::join!(proxied.contender.acquire(), leave) };
    let (acquired, left) = soon("acquire behind another", both).await?;
    left.map(|()| (acquired, fence))
}

/// Acquires where nobody holds.
pub(super) async fn take<C: Contender>(contender: &C) -> Result<C::Held, Failure> {
    soon("acquire", contender.acquire()).await?.map_err(|error| format!("cannot acquire: {error:?}"))
}

/// Gives a hold up.
pub(super) async fn leave<C: Contender>(contender: &C, held: C::Held) -> Result<(), Failure> {
    soon("release", contender.release(held)).await?.map_err(|error| format!("cannot release: {error:?}"))
}
