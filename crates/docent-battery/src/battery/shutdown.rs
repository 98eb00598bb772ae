use super::arena::{Arena, LONG};
use super::cases::{Cases, Failure, PATIENCE, ensure, soon};
use super::recipe::{Contender, Recipe, ShutsDown};
use super::round::{leave, take};
use crate::TestServer;
use docent_proto::{Code, Request};
use std::time::Duration;

/// Shuts a holder's client down while another contender waits.
///
/// The battery checks that the holder is asked to give up its hold, and still holds at that moment. If the
/// holder gives up, the shutdown leaves nothing behind and the other contender acquires. If the holder does
/// not give up, or the client is closed without asking, the hold is lost first, and its node stays until the
/// guard is dropped.
///
/// # Panics
///
/// Panics with the list of all failed cases.
pub async fn shutdown<R: Recipe>(recipe: &R, server: &TestServer)
where
    R::Contender: ShutsDown,
{
    let mut cases = Cases::new();
    cases.add("asked, and gives up", gives_up(Arena::new(recipe, server, LONG)));
    cases.add(
        "asked, and holds on",
        hold_ends_before_release(Arena::new(recipe, server, LONG), End::Shutdown),
    );
    cases.add("not asked", hold_ends_before_release(Arena::new(recipe, server, LONG), End::Close));
    cases.run("shutdown").await;
}

async fn gives_up<R: Recipe>(arena: Arena<'_, R>) -> Result<(), Failure>
where
    R::Contender: ShutsDown,
{
    let (holder, next) = (arena.other().await?, arena.proxied().await?);
    let held = take(&holder).await?;
    let leaves = async {
        next.waits(arena.recipe).await;
        let stops = async {
            holder.revoked(&held).await;
            ensure(holder.is_held(&held), || "the hold is lost as soon as the holder is asked".to_owned())?;
            let verified = holder.verify(&held).await;
            ensure(verified.is_ok(), || format!("the hold cannot be verified any more: {verified:?}"))?;
            leave(&holder, held).await
        };
        let (clean, stopped) = tokio::join!(holder.shutdown(PATIENCE), stops);
        stopped?;
        ensure(clean, || "the shutdown reports leftovers although the holder gave up its hold".to_owned())
    };
    let both = async { tokio::join!(next.contender.acquire(), leaves) };
    let (acquired, released) = soon("the shutdown and the next grant", both).await?;
    released?;
    leave(
        &next.contender,
        acquired.map_err(|error| format!("the next contender failed to acquire: {error:?}"))?,
    )
    .await?;
    arena.is_free_for(&next.contender).await
}

/// End of a holder's client that takes its hold away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Shutdown,
    Close,
}

/// Time limit of a shutdown that the holder does not respond to. The part that remains for stopping work is
/// longer than the pauses of a busy machine.
const IMPATIENT: Duration = Duration::from_secs(10);

/// Number of round trips to the servers during which work is stopping. They take longer than ending a
/// session.
const STEPS: usize = 50;

async fn hold_ends_before_release<R: Recipe>(arena: Arena<'_, R>, end: End) -> Result<(), Failure>
where
    R::Contender: ShutsDown,
{
    let (holder, next) = (arena.other().await?, arena.proxied().await?);
    let held = take(&holder).await?;
    let node = holder.node(&held);
    let mut witness = arena.server.client().await;
    let leaves = async {
        next.waits(arena.recipe).await;
        let stops = async {
            holder.lost(&held).await;
            ensure(!holder.is_held(&held), || "the guard is held although `lost` has resolved".to_owned())?;
            // Work under the hold is stopping now, in several steps.
            for _ in 0..STEPS {
                let exists = Request::Exists { path: node.clone(), watch: false };
                let found = witness.ask(exists).await.map_err(|error| error.to_string())?.header.code;
                ensure(found == Code::OK, || format!("the node was deleted while its work stops: {found}"))?;
            }
            drop(held);
            Ok::<_, Failure>(())
        };
        let ends = async {
            match end {
                End::Shutdown => holder.shutdown(IMPATIENT).await,
                End::Close => {
                    holder.close().await;
                    false
                }
            }
        };
        let (clean, stopped) = tokio::join!(ends, stops);
        stopped?;
        ensure(!clean, || "the shutdown does not report that it took the hold away".to_owned())
    };
    let both = async { tokio::join!(next.contender.acquire(), leaves) };
    let (acquired, released) = soon("the end of the client and the next grant", both).await?;
    released?;
    leave(
        &next.contender,
        acquired.map_err(|error| format!("the next contender failed to acquire: {error:?}"))?,
    )
    .await?;
    arena.is_free_for(&next.contender).await
}
