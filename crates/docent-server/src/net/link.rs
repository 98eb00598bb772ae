use super::buffers::{Incoming, Outgoing};
use super::hub::{Hub, Progress};
use super::members::MemberId;
use super::shape::SharedShape;
use super::shaped::Shaped;
use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};

/// Time in which a client must read the remaining output of a link that is being closed.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Longest usable handshake limit. A longer time exceeds the range of the clock.
const A_CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A link's entry in the hub. Dropping it cuts the link, also if the link's task is aborted.
pub(crate) struct Place {
    pub(super) hub: Arc<Hub>,
    pub(super) id: u64,
    /// Notified when output is queued, or the link was cut.
    pub(super) wake: Arc<Notify>,
    pub(super) shape: SharedShape,
}

impl Place {
    /// Adds a new link; `None` if there are too many links, or the member does not serve.
    pub(crate) fn enter(hub: &Arc<Hub>, peer: SocketAddr, member: MemberId) -> Option<Self> {
        let mut ensemble = hub.lock();
        let id = ensemble.enter(peer, member, hub.clock.now_ms())?;
        let (_, wake, shape) = ensemble.links.parts(id)?;
        Some(Self { hub: Arc::clone(hub), id, wake, shape })
    }
}

/// Runs one link until either side ends it.
pub(crate) async fn run<Io>(io: Io, place: Place, handshake: Duration)
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let Place { hub, id, wake, shape } = &place;
    let (hub, id) = (hub.as_ref(), *id);
    let (mut reader, mut writer) = tokio::io::split(Shaped::new(io, shape.clone()));
    let (mut input, mut output) = (Incoming::default(), Outgoing::default());
    let too_late = Instant::now() + handshake.min(A_CENTURY);
    let mut has_ended = false;
    loop {
        let progress = hub.receive(id, &mut input, &output);
        if output.is_empty() {
            output.fill(hub.take_output(id));
        }
        match progress {
            Progress::Cut => break,
            Progress::Hungry if has_ended => break,
            Progress::Ending => {
                // The result does not matter: the link is closed even if the client does not read.
                let _ = timeout(LAST_WORDS, end(&place, &mut writer, &mut output)).await;
                break;
            }
            Progress::Hungry => input.reserve(),
            // Yields even if the client reads as fast as it sends, because a write that is ready does not
            // yield to other tasks.
            Progress::Busy => yield_now().await,
            Progress::Full => {
                input.reserve_ahead();
                yield_now().await;
            }
        }
        // The fixed order makes simulation runs reproducible. Each iteration checks the hub anyway, so the
        // wake-up may come last.
        tokio::select! {
            biased;
            () = sleep_until(too_late), if !hub.is_attached(id) => {
                hub.give_up(id, handshake);
                break;
            }
            written = output.write(&mut writer), if !output.is_empty() => match written {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            },
            read = input.read(&mut reader), if !has_ended && reads(progress, &input) => match read {
                // Requests received before the end of the stream are still answered.
                Ok(0) => has_ended = true,
                Ok(_) => {}
                Err(_) => break,
            },
            () = ready(()), if progress == Progress::Busy => {}
            () = wake.notified() => {}
        }
    }
}

/// Returns whether bytes are read: all available ones, or a few ahead of a request that waits.
fn reads(progress: Progress, input: &Incoming) -> bool {
    progress != Progress::Busy && input.has_room()
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut ensemble = self.hub.lock();
        ensemble.cut(self.id);
        // The task's buffers have been dropped before.
        ensemble.links.task_ended(self.id);
    }
}

/// Writes the remaining output of a link, unless the link is cut in the meantime.
async fn end<W>(place: &Place, writer: &mut W, output: &mut Outgoing) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    drain(place, writer, output).await?;
    output.fill(place.hub.take_output(place.id));
    drain(place, writer, output).await?;
    if place.hub.is_open(place.id) { writer.shutdown().await } else { Ok(()) }
}

async fn drain<W>(place: &Place, writer: &mut W, output: &mut Outgoing) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    while !output.is_empty() && place.hub.is_open(place.id) {
        tokio::select! {
            biased;
            written = output.write(writer) => if written? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            },
            () = place.wake.notified() => {}
        }
    }
    Ok(())
}
