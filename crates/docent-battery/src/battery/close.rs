use super::arena::{Arena, LONG};
use super::cases::{Cases, Failure, PROMPT, ensure, longest_pause, soon};
use super::recipe::{Contender, Fault, Recipe, Step};
use super::round::{Line, take};
use crate::{RawError, TestServer};
use docent_testkit::internals::poll_times;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// More polls than any operation takes.
const MOST_POLLS: usize = 100;

/// Closes the client at the n-th poll of acquire, verify and release, for every n.
///
/// Checked: the future ends, with success or an error that [`Recipe::permits`]; what it holds is not held
/// after that; the server has neither session nor node; no task is left.
///
/// # Panics
/// When a case failed, with all that did.
pub async fn close<R: Recipe>(recipe: &R, server: &TestServer) {
    // One after the other, because tasks are counted.
    for (step, line) in [
        (Step::Acquire, Line::Free),
        (Step::Acquire, Line::Taken),
        (Step::Verify, Line::Free),
        (Step::Release, Line::Free),
    ] {
        let mut cases = Cases::new();
        cases.add(format!("{step:?}, {line:?} line"), closed(Arena::new(recipe, server, LONG), step, line));
        cases.run("closing").await;
    }
}

async fn closed<R: Recipe>(arena: Arena<'_, R>, step: Step, line: Line) -> Result<(), Failure> {
    let other = arena.other().await?;
    let held = match line {
        Line::Free => None,
        Line::Taken => Some(take(&other).await?),
    };
    let before = tasks();
    // A waiter is polled when something happens to it, and not more often than this before it waits for good.
    let most = if held.is_some() { 8 } else { MOST_POLLS };
    for polls in 0..most {
        let done = close_at(&arena, step, polls, held.is_some())
            .await
            .map_err(|failure| format!("closed after {polls} polls: {failure}"))?;
        arena.until_nodes(if held.is_some() { arena.recipe.nodes() } else { 0 }).await?;
        until_tasks(before).await?;
        if done {
            return Ok(());
        }
    }
    if held.is_some() { Ok(()) } else { Err(format!("it was not done after {MOST_POLLS} polls")) }
}

/// True when the operation was done before the client was closed.
async fn close_at<R: Recipe>(
    arena: &Arena<'_, R>,
    step: Step,
    polls: usize,
    waits: bool,
) -> Result<bool, Failure> {
    let setup = arena.setup(arena.server.connect_string());
    let contender = soon("connecting", arena.recipe.contender(&setup)).await?;
    let session = contender.session_id().ok_or("the contender has no session")?;
    let permitted = |result: Result<(), _>| match result {
        Err(error) if !arena.recipe.permits(step, Fault::Closed, &error) => {
            Err(format!("{step:?} failed: {error:?}"))
        }
        _ => Ok(()),
    };
    let done = match step {
        Step::Acquire => {
            let (done, result) = close_during(&contender, polls, waits, contender.acquire()).await?;
            if let Ok(held) = &result {
                ensure(!contender.is_held(held), || "it is held after the close".to_owned())?;
            }
            permitted(result.map(drop))?;
            done
        }
        Step::Verify => {
            let held = take(&contender).await?;
            let (done, result) = close_during(&contender, polls, waits, contender.verify(&held)).await?;
            ensure(!contender.is_held(&held), || "it is held after the close".to_owned())?;
            permitted(result)?;
            done
        }
        Step::Release => {
            let held = take(&contender).await?;
            let (done, result) = close_during(&contender, polls, waits, contender.release(held)).await?;
            permitted(result)?;
            done
        }
    };
    match arena.server.front().sessions().attach(session, arena.server.address()).await {
        Err(RawError::Gone(_)) => Ok(done),
        other => Err(format!("the session is not gone: {other:?}")),
    }
}

/// Closes the contender's client after so many polls of `future`; true when that was done by then.
async fn close_during<C: Contender, F: Future>(
    contender: &C,
    polls: usize,
    waits: bool,
    future: F,
) -> Result<(bool, F::Output), Failure> {
    let mut future = pin!(future);
    let polled = poll_times(polls, future.as_mut());
    let done = if waits {
        // A future that waits for another contender is not polled any more at some time.
        tokio::time::timeout(Duration::from_millis(100), polled).await.unwrap_or(None)
    } else {
        soon("it", polled).await?
    };
    let start = Instant::now();
    let both = match done {
        Some(output) => {
            soon("close", contender.close()).await?;
            return Ok((true, output));
        }
        None => soon("the future or the close", async { tokio::join!(future, contender.close()) }),
    };
    let (ended, pause) = longest_pause(both).await;
    ensure(start.elapsed() < PROMPT + pause, || format!("closing took {:?}", start.elapsed()))?;
    Ok((false, ended?.0))
}

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Waits until no more tasks than `count` are alive: those of links end when they see that their other end is
/// gone.
async fn until_tasks(count: usize) -> Result<(), Failure> {
    // Looks are counted, not time: a busy machine may pause this one.
    for _ in 0..PROMPT.as_millis() {
        if tasks() <= count {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    ensure(tasks() <= count, || format!("{} tasks are left over", tasks() - count))
}
