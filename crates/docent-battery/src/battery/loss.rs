use super::arena::{Arena, LONG, ProxiedContender};
use super::cases::{Cases, Failure, ensure, longest_pause, soon};
use super::recipe::{Contender, Fault, Recipe, RunsAsProcess, Step};
use super::round::{leave, take};
use crate::{Direction, Flow, FrameKind, Proxy, TestServer};
use docent_proto::Request;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;

/// Timeout of a session that expires soon: ten ticks.
const SHORT: Duration = Duration::from_secs(2);
/// Timeout of a session whose heartbeats and pings are so rare that only a watch or the end of the link can
/// report a loss in time.
const SLOW: Duration = Duration::from_secs(20);
/// A third of the margin of a lease of [`SHORT`]. A process that was paused for longer may learn of its loss
/// late. Even then [`Contender::is_held`] is right.
const MOST_PAUSE: Duration = Duration::from_millis(200);
/// Maximum delay of a watch event, unless the process was paused. News that arrives later did not come from a
/// watch.
const WATCH_DELAY: Duration = Duration::from_secs(1);

/// Takes a contender's hold away while another contender waits: the holder's link is black-holed in both
/// directions or in one, or refused, its session is ended, or its node is deleted.
///
/// The battery checks that
///
/// - a holder that is cut off learns of its loss before the next contender holds, unless its process was
///   paused, and never reports its guard as held when the next contender holds;
/// - a holder learns of the end of its session or node within a watch delay of the next contender;
/// - a lost guard stays lost, also after the link has recovered;
/// - the next holder's fence is higher, the place is free again afterwards, and the contender can acquire
///   again.
///
/// # Panics
///
/// Panics with the list of all failed cases.
pub async fn loss<R: Recipe>(recipe: &R, server: &TestServer) {
    let short = || Arena::new(recipe, server, SHORT);
    let slow = || Arena::new(recipe, server, SLOW);
    let mut cases = Cases::new();
    let flows = |directions: &'static [Direction]| {
        async move |proxy: &Proxy| directions.iter().for_each(|d| proxy.set_flow(*d, Flow::Swallow))
    };
    use Direction::{ToClient, ToServer};
    cases.add("black-holed both ways", cut_off(short(), flows(&[ToServer, ToClient])));
    cases.add("black-holed towards the server", cut_off(short(), flows(&[ToServer])));
    cases.add("black-holed towards the client", cut_off(short(), flows(&[ToClient])));
    cases.add("refused", cut_off(short(), async |proxy: &Proxy| proxy.cut().await));
    cases.add("session ended", ended(slow(), LossFault::Session));
    cases.add("node deleted", ended(slow(), LossFault::Node));
    cases.run("loss").await;
}

/// Stops the [process](RunsAsProcess::process) of a holder while another contender waits: once until the
/// other contender holds, and once for less than the holder's lease.
///
/// The battery checks that after the long stop the holder's first use of its guard reports the loss, and that
/// the guard stays lost. After the short stop the guard is still held.
///
/// # Panics
///
/// Panics with the list of all failed cases.
pub async fn freezes<R: RunsAsProcess>(recipe: &R, server: &TestServer) {
    let mut cases = Cases::new();
    cases.add("process frozen", frozen(Arena::new(recipe, server, SHORT)));
    cases.add("process frozen for less than its lease", frozen_briefly(Arena::new(recipe, server, LONG)));
    cases.run("freezes").await;
}

/// Black-holes a holder `runs` times, many at the same time: in both directions and in each direction alone,
/// at different moments between two heartbeats.
///
/// The battery checks the same as [`loss`] does for these three faults.
///
/// # Panics
///
/// Panics with the list of all failed cases.
pub async fn black_holes<R: Recipe>(recipe: &R, server: &TestServer, runs: u32) {
    use Direction::{ToClient, ToServer};
    const WAYS: [&[Direction]; 3] = [&[ToServer, ToClient], &[ToServer], &[ToClient]];
    let mut cases = Cases::at_a_time(34);
    for (run, ways) in (0..runs).zip(WAYS.iter().cycle()) {
        let moment = SHORT / 6 * (run % 20) / 20;
        let cut = async move |proxy: &Proxy| {
            tokio::time::sleep(moment).await;
            ways.iter().for_each(|way| proxy.set_flow(*way, Flow::Swallow));
        };
        let name = format!("black-holed {ways:?}, {moment:?} after the next contender waits");
        cases.add(name, cut_off(Arena::new(recipe, server, SHORT), cut));
    }
    cases.run("black holes").await;
}

async fn cut_off<R: Recipe>(arena: Arena<'_, R>, cut: impl AsyncFnOnce(&Proxy)) -> Result<(), Failure> {
    let (holder, next) = (arena.proxied().await?, arena.proxied_with(LONG).await?);
    let held = take(&holder.contender).await?;
    let fence = holder.contender.fence(&held);
    let acquire = async {
        let granted = next.contender.acquire().await;
        (granted, Instant::now(), holder.contender.is_held(&held))
    };
    let lose = async {
        next.waits(arena.recipe).await;
        cut(&holder.proxy).await;
        holder.contender.lost(&held).await;
        let at = Instant::now();
        ensure(!holder.contender.is_held(&held), || "held although `lost` has resolved".to_owned())?;
        Ok::<_, Failure>(at)
    };
    // The grant is polled first, so a loss that is seen in the same poll does not count as early enough.
    let both = async { tokio::join!(biased; acquire, lose) };
    let (done, pause) = longest_pause(soon("the loss and the next grant", both)).await;
    let ((granted, granted_at, is_held), lost_at) = done?;
    let (granted, lost_at) =
        (granted.map_err(|error| format!("the next contender failed to acquire: {error:?}"))?, lost_at?);
    ensure(!is_held, || "the old guard is held although the next contender holds".to_owned())?;
    // `is_held` is right even after a pause, but the wake-up of `lost` can only follow the pause.
    ensure(lost_at < granted_at || pause > MOST_PAUSE, || {
        format!(
            "the next contender held {:?} before the loss was reported, and the longest pause was {pause:?}",
            lost_at - granted_at
        )
    })?;
    let higher = next.contender.fence(&granted);
    ensure(fence.is_none() || fence < higher, || format!("the fence changed from {fence:?} to {higher:?}"))?;
    holder.proxy.heal().await.map_err(|error| error.to_string())?;
    holder.proxy.reset().await;
    leave(&next.contender, granted).await?;
    stays_lost(&arena, holder, held).await
}

/// Checks that a lost guard is never held again, and that its contender can acquire again.
async fn stays_lost<R: Recipe>(
    arena: &Arena<'_, R>,
    holder: ProxiedContender<R>,
    held: <R::Contender as Contender>::Held,
) -> Result<(), Failure> {
    let ProxiedContender { contender, proxy: _proxy, .. } = holder;
    match longest_pause(holds_again(arena, &contender, held)).await {
        // The new hold was lost as well, because the process was paused.
        (Err(_), pause) if pause > MOST_PAUSE => {}
        (done, _) => done?,
    }
    arena.is_free_for(&contender).await
}

async fn holds_again<R: Recipe>(
    arena: &Arena<'_, R>,
    contender: &R::Contender,
    held: <R::Contender as Contender>::Held,
) -> Result<(), Failure> {
    // The contender is connected again, and acquires a new hold while the old guard still exists.
    let again = take(contender).await?;
    soon("waiting again for the loss", contender.lost(&held)).await?;
    ensure(!contender.is_held(&held), || "the lost guard is held again".to_owned())?;
    ensure(contender.is_held(&again), || "the newly acquired guard is not held".to_owned())?;
    for (step, result) in [
        (Step::Verify, soon("verify", contender.verify(&held)).await?),
        (Step::Release, soon("release", contender.release(held)).await?.map(drop)),
    ] {
        match result {
            Ok(()) => return Err(format!("{step:?} of a lost guard succeeded")),
            Err(error) if arena.recipe.permits(step, Fault::Lost, &error) => {}
            Err(error) => return Err(format!("{step:?} failed: {error:?}")),
        }
    }
    ensure(contender.is_held(&again), || "the release of a lost guard ended the new hold".to_owned())?;
    leave(contender, again).await
}

/// External fault that ends a hold.
#[derive(Clone, Copy)]
enum LossFault {
    Session,
    Node,
}

async fn ended<R: Recipe>(arena: Arena<'_, R>, fault: LossFault) -> Result<(), Failure> {
    let (holder, next) = (arena.proxied().await?, arena.proxied().await?);
    let held = take(&holder.contender).await?;
    let fence = holder.contender.fence(&held);
    let acquire = next.contender.acquire();
    let lose = async {
        next.waits(arena.recipe).await;
        match fault {
            LossFault::Session => {
                let session = holder.session()?;
                arena.server.expire(session).await.map_err(|error| error.to_string())?;
            }
            LossFault::Node => {
                let path = holder.contender.node(&held);
                let mut client = arena.server.client().await;
                client
                    .call(Request::Delete { path, version: -1 })
                    .await
                    .map_err(|error| error.to_string())?;
            }
        }
        holder.contender.lost(&held).await;
        Ok::<_, Failure>(Instant::now())
    };
    let both = async { tokio::join!(biased; acquire, lose) };
    let (done, pause) = longest_pause(soon("the loss and the next grant", both)).await;
    let (granted, lost_at) = done?;
    let (granted, lost_at) =
        (granted.map_err(|error| format!("the next contender failed to acquire: {error:?}"))?, lost_at?);
    let trace = next.proxy.trace();
    let event = trace
        .iter()
        .find(|frame| frame.kind == FrameKind::Event)
        .ok_or("no event woke the next contender")?;
    let late = lost_at.saturating_duration_since(event.at);
    ensure(late < WATCH_DELAY + pause, || {
        format!(
            "the holder learned of its loss {late:?} after the next contender, and the longest pause was {pause:?}"
        )
    })?;
    let higher = next.contender.fence(&granted);
    ensure(fence.is_none() || fence < higher, || format!("the fence changed from {fence:?} to {higher:?}"))?;
    leave(&next.contender, granted).await?;
    stays_lost(&arena, holder, held).await
}

/// Stops the holder's process until another contender holds. The holder must report its loss at the first
/// check.
async fn frozen<R: RunsAsProcess>(arena: Arena<'_, R>) -> Result<(), Failure> {
    let mut holder = Frozen::start(&arena).await?;
    let next = arena.proxied_with(LONG).await?;
    let freeze = async {
        next.waits(arena.recipe).await;
        holder.signal("STOP").await
    };
    let both = async { tokio::join!(next.contender.acquire(), freeze) };
    let (granted, stopped) = soon("the next grant", both).await?;
    stopped?;
    let granted = granted.map_err(|error| format!("the next contender failed to acquire: {error:?}"))?;
    // The question is sent before the process resumes, so nothing can run between its wake-up and its
    // check.
    holder.request_report().await?;
    holder.signal("CONT").await?;
    ensure(holder.answer().await? == "lost", || "held at the first use after the freeze".to_owned())?;
    ensure(holder.report().await? == "lost", || "the lost guard is held again".to_owned())?;
    ensure(next.contender.is_held(&granted), || "the next contender no longer holds".to_owned())?;
    leave(&next.contender, granted).await?;
    drop(holder);
    arena.is_free_for(&next.contender).await
}

/// Checks that a stop shorter than the lease does not end the hold.
async fn frozen_briefly<R: RunsAsProcess>(arena: Arena<'_, R>) -> Result<(), Failure> {
    let mut holder = Frozen::start(&arena).await?;
    holder.signal("STOP").await?;
    // The pause under test is at most a sixth of the remaining lease, so a busy machine may add to it.
    tokio::time::sleep(LONG / 12).await;
    holder.signal("CONT").await?;
    ensure(holder.report().await? == "held", || "a short pause ended the hold".to_owned())?;
    drop(holder);
    Ok(())
}

/// A holder in a separate process.
///
/// # On drop
///
/// The process is killed.
struct Frozen {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Frozen {
    async fn start<R: RunsAsProcess>(arena: &Arena<'_, R>) -> Result<Self, Failure> {
        let command = arena.recipe.process(&arena.setup(arena.server.connect_string()));
        let mut child = Command::from(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start the holder's process: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the holder's process has no pipes".to_owned());
        };
        let mut holder = Self { child, input, output: BufReader::new(output).lines() };
        let first = holder.answer().await?;
        ensure(first == "held", || format!("the holder's process printed {first:?} instead of \"held\""))?;
        Ok(holder)
    }

    async fn report(&mut self) -> Result<String, Failure> {
        self.request_report().await?;
        self.answer().await
    }

    async fn request_report(&mut self) -> Result<(), Failure> {
        self.input.write_all(b"?\n").await.map_err(|error| error.to_string())
    }

    async fn answer(&mut self) -> Result<String, Failure> {
        let line = soon("the answer of the holder's process", self.output.next_line()).await?;
        line.map_err(|error| error.to_string())?.ok_or_else(|| "the holder's process ended".to_owned())
    }

    async fn signal(&self, name: &str) -> Result<(), Failure> {
        let id = self.child.id().ok_or("the holder's process ended")?;
        let script = format!("kill -{name} {id}");
        let status = Command::new("sh").args(["-c", &script]).status().await;
        ensure(status.is_ok_and(|status| status.success()), || format!("{script:?} failed"))
    }
}
