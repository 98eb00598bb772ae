use super::arena::{Arena, LONG};
use super::cases::{Cases, Failure, PROMPT, ensure, longest_pause, soon};
use super::recipe::{Contender, Fault, Recipe, Step};
use super::round::{Line, take};
use crate::TestServer;
use docent_testkit::internals::poll_times;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// Upper bound on the polls of any operation.
const MOST_POLLS: usize = 100;

/// Closes the client at the n-th poll of acquire, verify and release, for every n.
///
/// The battery checks that the future ends with success or with an error that [`Recipe::permits`], that its
/// result is not held afterwards, that the server has neither the session nor a node of the client, and that
/// no task is left.
///
/// # Panics
///
/// Panics with the list of all failed cases.
pub async fn close<R: Recipe>(recipe: &R, server: &TestServer) {
    // Cases run one after the other, because the battery counts tasks.
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
    // A waiter is polled when an event arrives, and less often than this before it waits indefinitely.
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
    if held.is_some() {
        Ok(())
    } else {
        Err(format!("the operation did not finish within {MOST_POLLS} polls"))
    }
}

/// Returns true if the operation finished before the client was closed.
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
                ensure(!contender.is_held(held), || "the guard is held after the close".to_owned())?;
            }
            permitted(result.map(drop))?;
            done
        }
        Step::Verify => {
            let held = take(&contender).await?;
            let (done, result) = close_during(&contender, polls, waits, contender.verify(&held)).await?;
            ensure(!contender.is_held(&held), || "the guard is held after the close".to_owned())?;
            permitted(result)?;
            done
        }
        Step::Release => {
            let held = take(&contender).await?;
            let (done, result) = close_during(&contender, polls, waits, contender.release(held)).await?;
            permitted(result.map(drop))?;
            done
        }
    };
    match arena.server.has_ended(session).await {
        Ok(true) => Ok(done),
        other => Err(format!("the session still exists after the close: {other:?}")),
    }
}

/// Closes the contender's client after `polls` polls of `future`. Returns whether `future` finished before
/// the close, and its output.
async fn close_during<C: Contender, F: Future>(
    contender: &C,
    polls: usize,
    waits: bool,
    future: F,
) -> Result<(bool, F::Output), Failure> {
    let mut future = pin!(future);
    let polled = poll_times(polls, future.as_mut());
    let done = if waits {
        // A future that waits for another contender is eventually not polled any more.
        tokio::time::timeout(Duration::from_millis(100), polled).await.unwrap_or(None)
    } else {
        soon("the operation", polled).await?
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

/// Waits until at most `count` tasks are alive. The tasks of links end when they notice that the other end is
/// closed.
async fn until_tasks(count: usize) -> Result<(), Failure> {
    // The loop counts polls, not time, because a busy machine may pause this process.
    for _ in 0..PROMPT.as_millis() {
        if tasks() <= count {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    ensure(tasks() <= count, || format!("{} tasks are left over", tasks() - count))
}
