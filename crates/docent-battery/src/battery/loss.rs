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

/// Timeout of a session that is soon over: ten ticks.
const SHORT: Duration = Duration::from_secs(2);
/// Timeout of a session whose heartbeat and pings are so far apart that only a watch, or the end of the link,
/// can tell in time.
const SLOW: Duration = Duration::from_secs(20);
/// A third of the margin of a lease of [`SHORT`]. A process that was paused for longer may learn late that it
/// lost; its questions are answered rightly even then.
const MOST_PAUSE: Duration = Duration::from_millis(200);
/// Longest delay of a watch event, unless the process was paused: news that come later did not come by a
/// watch.
const WATCH_DELAY: Duration = Duration::from_secs(1);

/// Takes a contender's hold away, with another next in line: black-holed both ways and each way alone,
/// refused, with its session ended, its node deleted.
///
/// Checked: cut off, it knows before the next one holds, as far as its process was not paused, and never says
/// that it holds when the next one does; of an end of its session or node it learns within a watch delay of
/// the next one. Lost stays lost, also when the link is back; then the next one's fence is higher, the place
/// is free again, and the contender can acquire again.
///
/// # Panics
/// When a case failed, with all that did.
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

/// Stops the [process](RunsAsProcess::process) of a holder, with another contender next in line: until that
/// one holds, and for less than its lease.
///
/// Checked: after the long stop its first use says that it is lost, and it stays lost; after the short one it
/// is held.
///
/// # Panics
/// When a case failed, with all that did.
pub async fn freezes<R: RunsAsProcess>(recipe: &R, server: &TestServer) {
    let mut cases = Cases::new();
    cases.add("process frozen", frozen(Arena::new(recipe, server, SHORT)));
    cases.add("process frozen for less than its lease", frozen_briefly(Arena::new(recipe, server, LONG)));
    cases.run("freezes").await;
}

/// Black-holes a holder `runs` times, many at once: both ways and each way alone in turn, at different
/// moments between two heartbeats.
///
/// Checked: as [`loss`] does for those three.
///
/// # Panics
/// When a case failed, with all that did.
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
        let name = format!("black-holed {ways:?}, {moment:?} after the next one waits");
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
        ensure(!holder.contender.is_held(&held), || "it says lost, and that it is held".to_owned())?;
        Ok::<_, Failure>(at)
    };
    // The grant is looked at first: nothing is gained by a loss that is seen with it.
    let both = async { tokio::join!(biased; acquire, lose) };
    let (done, pause) = longest_pause(soon("loss and next grant", both)).await;
    let ((granted, granted_at, is_held), lost_at) = done?;
    let (granted, lost_at) = (granted.map_err(|error| format!("the next one failed: {error:?}"))?, lost_at?);
    ensure(!is_held, || "it says that it holds when the next one does".to_owned())?;
    // The clock is right also after a pause; the wake-up can only come after it.
    ensure(lost_at < granted_at || pause > MOST_PAUSE, || {
        format!("the next one held it {:?} before, and the longest pause was {pause:?}", lost_at - granted_at)
    })?;
    let higher = next.contender.fence(&granted);
    ensure(fence.is_none() || fence < higher, || format!("the fence went from {fence:?} to {higher:?}"))?;
    holder.proxy.heal().await.map_err(|error| error.to_string())?;
    holder.proxy.reset().await;
    leave(&next.contender, granted).await?;
    stays_lost(&arena, holder, held).await
}

/// Checks that a lost hold is never held again, and that its holder can go on.
async fn stays_lost<R: Recipe>(
    arena: &Arena<'_, R>,
    holder: ProxiedContender<R>,
    held: <R::Contender as Contender>::Held,
) -> Result<(), Failure> {
    let ProxiedContender { contender, proxy: _proxy, .. } = holder;
    match longest_pause(holds_anew(arena, &contender, held)).await {
        // The hold acquired anew was lost in its turn.
        (Err(_), pause) if pause > MOST_PAUSE => {}
        (done, _) => done?,
    }
    arena.is_free_for(&contender).await
}

async fn holds_anew<R: Recipe>(
    arena: &Arena<'_, R>,
    contender: &R::Contender,
    held: <R::Contender as Contender>::Held,
) -> Result<(), Failure> {
    // It is connected again now, and holds anew while the old one is still there.
    let again = take(contender).await?;
    soon("lost, asked again", contender.lost(&held)).await?;
    ensure(!contender.is_held(&held), || "it is held again".to_owned())?;
    ensure(contender.is_held(&again), || "what was acquired anew is not held".to_owned())?;
    for (step, result) in [
        (Step::Verify, soon("verify", contender.verify(&held)).await?),
        (Step::Release, soon("release", contender.release(held)).await?),
    ] {
        match result {
            Ok(()) => return Err(format!("{step:?} of what was lost succeeded")),
            Err(error) if arena.recipe.permits(step, Fault::Lost, &error) => {}
            Err(error) => return Err(format!("{step:?} failed: {error:?}")),
        }
    }
    ensure(contender.is_held(&again), || "the release of what was lost took what is held".to_owned())?;
    leave(contender, again).await
}

/// Fault that takes a hold away from outside.
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
    let (done, pause) = longest_pause(soon("loss and next grant", both)).await;
    let (granted, lost_at) = done?;
    let (granted, lost_at) = (granted.map_err(|error| format!("the next one failed: {error:?}"))?, lost_at?);
    let trace = next.proxy.trace();
    let event =
        trace.iter().find(|frame| frame.kind == FrameKind::Event).ok_or("no event woke the next one")?;
    let late = lost_at.saturating_duration_since(event.at);
    ensure(late < WATCH_DELAY + pause, || {
        format!("it knew {late:?} after the next one, and the longest pause was {pause:?}")
    })?;
    let higher = next.contender.fence(&granted);
    ensure(fence.is_none() || fence < higher, || format!("the fence went from {fence:?} to {higher:?}"))?;
    leave(&next.contender, granted).await?;
    stays_lost(&arena, holder, held).await
}

/// Stopped until somebody else holds, the holder says lost at its first look.
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
    let granted = granted.map_err(|error| format!("the next one failed: {error:?}"))?;
    // Asked before it goes on: nothing comes between its waking up and its looking.
    holder.ask().await?;
    holder.signal("CONT").await?;
    ensure(holder.answer().await? == "lost", || "the first use after the freeze says held".to_owned())?;
    ensure(holder.says().await? == "lost", || "it is held again".to_owned())?;
    ensure(next.contender.is_held(&granted), || "the next one does not hold any more".to_owned())?;
    leave(&next.contender, granted).await?;
    drop(holder);
    arena.is_free_for(&next.contender).await
}

/// A stop that is shorter than the lease takes nothing.
async fn frozen_briefly<R: RunsAsProcess>(arena: Arena<'_, R>) -> Result<(), Failure> {
    let mut holder = Frozen::start(&arena).await?;
    holder.signal("STOP").await?;
    // The pause under test: a sixth of the lease that is left at least, so that a busy machine may add to it.
    tokio::time::sleep(LONG / 12).await;
    holder.signal("CONT").await?;
    ensure(holder.says().await? == "held", || "a short pause lost it".to_owned())?;
    drop(holder);
    Ok(())
}

/// A holder in a process of its own.
///
/// # On drop
/// It is killed.
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
            .map_err(|error| format!("the holder's process does not start: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the holder's process has no pipes".to_owned());
        };
        let mut holder = Self { child, input, output: BufReader::new(output).lines() };
        let first = holder.answer().await?;
        ensure(first == "held", || format!("the process says {first:?} in place of \"held\""))?;
        Ok(holder)
    }

    async fn says(&mut self) -> Result<String, Failure> {
        self.ask().await?;
        self.answer().await
    }

    async fn ask(&mut self) -> Result<(), Failure> {
        self.input.write_all(b"?\n").await.map_err(|error| error.to_string())
    }

    async fn answer(&mut self) -> Result<String, Failure> {
        let line = soon("the holder's process", self.output.next_line()).await?;
        line.map_err(|error| error.to_string())?.ok_or_else(|| "the holder's process ended".to_owned())
    }

    async fn signal(&self, name: &str) -> Result<(), Failure> {
        let id = self.child.id().ok_or("the holder's process ended")?;
        let script = format!("kill -{name} {id}");
        let status = Command::new("sh").args(["-c", &script]).status().await;
        ensure(status.is_ok_and(|status| status.success()), || format!("{script:?} failed"))
    }
}
