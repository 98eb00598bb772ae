use super::arena::{Arena, LONG, ProxiedContender};
use super::cases::{Cases, Failure, ensure, soon};
use super::recipe::{Contender, Recipe, Step};
use super::round::{LINES, Line, leave, play, record, released, take};
use super::round_request::RoundRequest;
use crate::{Rule, TestServer};
use docent_testkit::abandon_at;
use docent_testkit::internals::poll_times;
use std::pin::pin;

/// Upper bound on the polls of any operation.
const MOST_POLLS: usize = 100;

/// Drops the futures of acquire, verify and release
///
/// - at the n-th poll, for every n, alone and behind a holder, over an undisturbed link;
/// - at the n-th poll, with the link broken just before;
/// - when a reply was swallowed, for the reply of each request, after which the link breaks.
///
/// The battery checks that nothing is left on the server long before the session could expire, that another
/// contender gets its turn, and that a guard is still held after its verify was dropped.
///
/// # Panics
///
/// Panics with the list of all failed cases.
pub async fn cancel<R: Recipe>(recipe: &R, server: &TestServer) {
    let arena = || Arena::new(recipe, server, LONG);
    let mut cases = Cases::new();
    for line in LINES {
        cases.add(format!("acquire, {line:?} line"), acquire(arena(), line));
        let request = record(&arena(), line).await.expect("a round without faults");
        for request in request {
            let name = format!("{line:?} line, the reply to {request} is swallowed");
            cases.add_request(name, move || swallowed(arena(), line, request));
        }
    }
    cases.add("verify", verify(arena()));
    cases.add("release", release(arena()));
    let steps = match server.restores_sessions() {
        true => &[Step::Acquire, Step::Verify, Step::Release][..],
        // A guard that is to be verified is lost with its link.
        false => &[Step::Acquire, Step::Release],
    };
    for step in steps.iter().copied() {
        cases.add(format!("{step:?}, disconnected"), disconnected(arena(), step));
    }
    cases.run("cancellation").await;
}

async fn acquire<R: Recipe>(arena: Arena<'_, R>, line: Line) -> Result<(), Failure> {
    let other = arena.other().await?;
    let mut proxied = arena.proxied().await?;
    for polls in 0..MOST_POLLS {
        proxied.mark();
        let done = match line {
            Line::Free => abandon_at(polls, proxied.contender.acquire()).await,
            Line::Taken => {
                let held = take(&other).await?;
                let make_room = async {
                    proxied.waits(arena.recipe).await;
                    // The hold ends, whether or not the release succeeds.
                    let _ = other.release(held).await;
                    std::future::pending::<()>().await;
                };
                let abandoned = async {
                    tokio::select! {
                        done = abandon_at(polls, proxied.contender.acquire()) => done,
                        () = make_room => None,
                    }
                };
                soon("the acquire behind another contender", abandoned).await?
            }
        };
        match done {
            Some(Ok(held)) => return leave(&proxied.contender, held).await,
            Some(Err(error)) => return Err(format!("acquire failed: {error:?}")),
            None => arena.is_free_for(&other).await.map_err(|failure| at(polls, &failure))?,
        }
    }
    Err(format!("the operation did not finish within {MOST_POLLS} polls"))
}

async fn verify<R: Recipe>(arena: Arena<'_, R>) -> Result<(), Failure> {
    let ProxiedContender { contender, proxy: _proxy, .. } = arena.proxied().await?;
    let held = take(&contender).await?;
    for polls in 0..MOST_POLLS {
        let done = abandon_at(polls, contender.verify(&held)).await;
        ensure(contender.is_held(&held), || at(polls, "the guard is no longer held"))?;
        match done {
            Some(Ok(())) => return leave(&contender, held).await,
            Some(Err(error)) => return Err(format!("verify failed: {error:?}")),
            None => {}
        }
    }
    Err(format!("the operation did not finish within {MOST_POLLS} polls"))
}

async fn release<R: Recipe>(arena: Arena<'_, R>) -> Result<(), Failure> {
    let other = arena.other().await?;
    let proxied = arena.proxied().await?;
    for polls in 0..MOST_POLLS {
        let held = take(&proxied.contender).await?;
        let done = abandon_at(polls, proxied.contender.release(held)).await;
        arena.is_free_for(&other).await.map_err(|failure| at(polls, &failure))?;
        if let Some(result) = done {
            return released(result).map_err(|failure| format!("release failed: {failure}"));
        }
    }
    Err(format!("the operation did not finish within {MOST_POLLS} polls"))
}

/// Returns true if the request was sent and its reply was swallowed.
async fn swallowed<R: Recipe>(
    arena: Arena<'_, R>,
    line: Line,
    request: RoundRequest,
) -> Result<bool, Failure> {
    let other = arena.other().await?;
    let proxied = arena.proxied().await?;
    let rule = proxied.proxy.add(Rule::on(request.op).nth(request.nth).swallow_reply());
    tokio::select! {
        biased;
        () = rule.fired() => {}
        played = play(&arena, &proxied, &other, line, None) => {
            played?;
            return Ok(false);
        }
    }
    proxied.proxy.reset().await;
    arena.is_free_for(&other).await?;
    // The contender must be able to acquire and release again.
    leave(&proxied.contender, take(&proxied.contender).await?).await?;
    Ok(true)
}

/// Breaks the link after `polls` polls, polls the future once more, drops it, and lets the link reconnect.
async fn disconnected<R: Recipe>(arena: Arena<'_, R>, step: Step) -> Result<(), Failure> {
    let other = arena.other().await?;
    let proxied = arena.proxied().await?;
    let (contender, proxy) = (&proxied.contender, &proxied.proxy);
    for polls in 0..MOST_POLLS {
        // The contender is connected, and no node of an earlier attempt blocks it.
        leave(contender, take(contender).await?).await?;
        let done = match step {
            Step::Acquire => cut_at(polls, &proxied, contender.acquire()).await.is_some(),
            Step::Release => {
                let held = take(contender).await?;
                cut_at(polls, &proxied, contender.release(held)).await.is_some()
            }
            Step::Verify => {
                let held = take(contender).await?;
                let done = cut_at(polls, &proxied, contender.verify(&held)).await.is_some();
                ensure(contender.is_held(&held), || at(polls, "the guard is no longer held"))?;
                done
            }
        };
        proxy.heal().await.map_err(|error| error.to_string())?;
        arena.is_free_for(&other).await.map_err(|failure| at(polls, &failure))?;
        if done {
            return Ok(());
        }
    }
    Err(format!("the operation did not finish within {MOST_POLLS} polls"))
}

async fn cut_at<R: Recipe, F: Future>(
    polls: usize,
    proxied: &ProxiedContender<R>,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    let done = poll_times(polls, future.as_mut()).await;
    if done.is_none() {
        proxied.proxy.cut().await;
        let _ = poll_times(1, future).await;
    }
    done
}

fn at(polls: usize, failure: &str) -> Failure {
    format!("dropped after {polls} polls: {failure}")
}
