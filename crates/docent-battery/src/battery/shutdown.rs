use super::arena::{Arena, LONG};
use super::cases::{Cases, Failure, PATIENCE, ensure, soon};
use super::recipe::{Contender, Recipe, ShutsDown};
use super::round::{leave, take};
use crate::TestServer;
use docent_proto::{Code, Request};
use std::time::Duration;

/// Shuts a holder's client down while another contender waits.
///
/// Checked: the holder is asked, and still holds; when it gives up, the shutdown leaves nothing and another
/// contender holds. If it does not give up, or the client is closed without asking, it is lost first, and its
/// node stays until it is dropped.
///
/// # Panics
/// When a case failed, with all that did.
pub async fn shutdown<R: Recipe>(recipe: &R, server: &TestServer)
where
    R::Contender: ShutsDown,
{
    let mut cases = Cases::new();
    cases.add("asked, and gives up", gives_up(Arena::new(recipe, server, LONG)));
    cases.add("asked, and holds on", taken_away(Arena::new(recipe, server, LONG), End::Shutdown));
    cases.add("not asked", taken_away(Arena::new(recipe, server, LONG), End::Close));
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
            ensure(holder.is_held(&held), || "it is lost as soon as it is asked".to_owned())?;
            let verified = holder.verify(&held).await;
            ensure(verified.is_ok(), || format!("it cannot be verified any more: {verified:?}"))?;
            leave(&holder, held).await
        };
        let (clean, stopped) = tokio::join!(holder.shutdown(PATIENCE), stops);
        stopped?;
        ensure(clean, || "something is left although it was given up".to_owned())
    };
    let both = async { tokio::join!(next.contender.acquire(), leaves) };
    let (acquired, left) = soon("shutdown and next grant", both).await?;
    left?;
    leave(&next.contender, acquired.map_err(|error| format!("the next one failed: {error:?}"))?).await?;
    arena.is_free_for(&next.contender).await
}

/// End of a holder's client that takes its hold away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Shutdown,
    Close,
}

/// Time of a shutdown that a holder does not respond to: long enough that what is left of it for work that
/// stops outlasts the pauses of a busy machine.
const IMPATIENT: Duration = Duration::from_secs(10);

/// Trips to the servers that work makes which stops: longer than it takes to end a session.
const STEPS: usize = 50;

async fn taken_away<R: Recipe>(arena: Arena<'_, R>, end: End) -> Result<(), Failure>
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
            ensure(!holder.is_held(&held), || "it says lost, and that it is held".to_owned())?;
            // Work under it is stopping now, in some steps.
            for _ in 0..STEPS {
                let look = Request::Exists { path: node.clone(), watch: false };
                let found = witness.ask(look).await.map_err(|error| error.to_string())?.header.code;
                ensure(found == Code::OK, || format!("its node is gone while its work stops: {found}"))?;
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
        ensure(!clean, || "that it was taken away is not reported".to_owned())
    };
    let both = async { tokio::join!(next.contender.acquire(), leaves) };
    let (acquired, left) = soon("the end of the client and the next grant", both).await?;
    left?;
    leave(&next.contender, acquired.map_err(|error| format!("the next one failed: {error:?}"))?).await?;
    arena.is_free_for(&next.contender).await
}
