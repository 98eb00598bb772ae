use super::link::Broken;
use super::state::{Settings, State};
use super::tap::{Tap, Verdict};
use super::trace::{Direction, Fate, FrameKind, Traced};
use bytes::{BufMut, Bytes, BytesMut};
use docent_proto::Frames;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

const FRAME_LIMIT: usize = 64 << 20;
/// Maximum bytes that wait to be delivered in one direction of a link. Beyond that, nothing more is read.
const WAITING_LIMIT: usize = FRAME_LIMIT;
/// Bytes that a frame counts besides its own, because small frames also need memory.
const FRAME_COST: usize = 128;
/// Number of pieces per second that a throttled link passes.
const PIECES_PER_SECOND: u32 = 50;

/// Flow of the frames of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// Frames are passed on.
    #[default]
    Pass,
    /// Frames are swallowed for good, and so is the end of the stream. Connections stay open.
    Swallow,
    /// Frames are held and passed on later, as by a network that stalls and recovers.
    Hold,
}

/// One direction of one link.
#[derive(Debug)]
pub(super) struct Lane<'a> {
    pub(super) link: u64,
    pub(super) direction: Direction,
    pub(super) state: &'a State,
    pub(super) tap: &'a Mutex<Tap>,
}

/// An item in transit, with the time at which it is due and the room that it takes.
type Waiting = (Instant, Item, OwnedSemaphorePermit);

/// An item that waits to be delivered.
#[derive(Debug)]
enum Item {
    /// A frame without its length prefix. A client's frame has been examined, and has an index in the trace.
    Frame { frame: Bytes, traced: Option<usize> },
    /// Bytes that are not frames, such as four-letter words.
    Raw(Bytes),
    /// The end of the stream.
    End,
    /// A reset of the link.
    Reset,
}

impl Item {
    /// Returns the room that the item takes while it waits.
    fn room(&self) -> u32 {
        let bytes = match self {
            Self::Frame { frame: bytes, .. } | Self::Raw(bytes) => bytes.len(),
            Self::End | Self::Reset => 0,
        };
        u32::try_from((bytes + FRAME_COST).min(WAITING_LIMIT)).unwrap_or(u32::MAX)
    }
}

impl Lane<'_> {
    /// Passes everything from one end to the other until the stream ends.
    pub(super) async fn run(
        self,
        from: impl AsyncRead + Unpin,
        to: impl AsyncWrite + Unpin,
    ) -> Result<(), Broken> {
        let (queue, items) = mpsc::unbounded_channel();
        let collect = async {
            self.collect(from, queue).await;
            Ok(())
        };
        tokio::try_join!(collect, self.deliver(items, to)).map(|_| ())
    }

    async fn collect(&self, mut from: impl AsyncRead + Unpin, queue: UnboundedSender<Waiting>) {
        let mut received = BytesMut::new();
        let mut frames = Some(Frames::new(FRAME_LIMIT));
        let room = Arc::new(Semaphore::new(WAITING_LIMIT));
        loop {
            let end = match from.read_buf(&mut received).await {
                Ok(0) => Some(Item::End),
                Ok(_) => None,
                Err(_) => Some(Item::Reset),
            };
            let due = Instant::now() + self.settings().borrow().delay + self.state.sessions.net().latency();
            // All frames that arrived together are recorded before one of them is passed on. Otherwise the
            // reply to the first request could be recorded before the second request.
            let mut items = self.cut(&mut received, &mut frames);
            let ended = end.is_some() || matches!(items.last(), Some(Item::Reset));
            items.extend(end);
            for item in items {
                // The semaphore is never closed, and delivery ends first only together with the link.
                let Ok(taken) = Arc::clone(&room).acquire_many_owned(item.room()).await else { return };
                let _ = queue.send((due, item, taken));
            }
            if ended {
                return;
            }
        }
    }

    /// Splits `received` into complete frames. Once something is not a frame, all bytes are passed on
    /// unchanged.
    fn cut(&self, received: &mut BytesMut, frames: &mut Option<Frames>) -> Vec<Item> {
        let mut items = Vec::new();
        while let Some(splitter) = frames {
            match splitter.next(received) {
                Ok(Some(frame)) => items.push(self.examine(frame)),
                Ok(None) => return items,
                Err(_) => *frames = None,
            }
            if matches!(items.last(), Some(Item::Reset)) {
                return items;
            }
        }
        if !received.is_empty() {
            items.push(Item::Raw(received.split().freeze()));
        }
        items
    }

    fn examine(&self, frame: Bytes) -> Item {
        if self.direction == Direction::ToClient {
            return Item::Frame { frame, traced: None };
        }
        let mut tap = self.tap();
        let frame = tap.edit(frame, self.state);
        match tap.request(&frame, self.state) {
            Some(index) => Item::Frame { frame, traced: Some(index) },
            None => Item::Reset,
        }
    }

    async fn deliver(
        &self,
        mut items: UnboundedReceiver<Waiting>,
        mut to: impl AsyncWrite + Unpin,
    ) -> Result<(), Broken> {
        while let Some((due, item, _taken)) = items.recv().await {
            tokio::time::sleep_until(due).await;
            match item {
                Item::Frame { frame, traced } => self.deliver_frame(&frame, traced, &mut to).await?,
                Item::Raw(bytes) => self.deliver_raw(&bytes, &mut to).await?,
                Item::Reset => {
                    let _ = self.end_may_pass().await;
                    return Err(Broken);
                }
                Item::End => {
                    self.end_may_pass().await?;
                    return to.shutdown().await.map_err(|_| Broken);
                }
            }
        }
        Ok(())
    }

    async fn deliver_frame(
        &self,
        frame: &Bytes,
        traced: Option<usize>,
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Broken> {
        let swallowed = self.may_pass().await == Flow::Swallow;
        let verdict = match traced {
            None => self.tap().reply(frame, swallowed, self.state),
            Some(index) if swallowed => {
                self.state.mark_swallowed(index);
                Verdict::Swallow
            }
            Some(_) => Verdict::Forward,
        };
        match verdict {
            Verdict::Forward => {
                let mut out = BytesMut::with_capacity(4 + frame.len());
                docent_proto::write_frame(&mut out, |out| out.put_slice(frame));
                self.send(&out, to).await
            }
            Verdict::Swallow => Ok(()),
            Verdict::Reset => Err(Broken),
        }
    }

    async fn deliver_raw(&self, bytes: &Bytes, to: &mut (impl AsyncWrite + Unpin)) -> Result<(), Broken> {
        let mut traced = Traced::new(self.link, self.direction, FrameKind::Raw, bytes.len());
        if self.may_pass().await == Flow::Swallow {
            traced.fate = Fate::Swallowed;
        }
        let fate = traced.fate;
        self.state.record(traced);
        match fate {
            Fate::Forwarded => self.send(bytes, to).await,
            Fate::Swallowed => Ok(()),
        }
    }

    /// Writes the bytes at the rate of the throttle.
    async fn send(&self, mut bytes: &[u8], to: &mut (impl AsyncWrite + Unpin)) -> Result<(), Broken> {
        while !bytes.is_empty() {
            let rate = self.settings().borrow().bytes_per_second;
            let piece = rate.map_or(bytes.len(), |rate| (rate.get() / PIECES_PER_SECOND).max(1) as usize);
            let (now, later) = bytes.split_at(piece.min(bytes.len()));
            if let Some(rate) = rate {
                tokio::time::sleep(Duration::from_secs_f64(now.len() as f64 / f64::from(rate.get()))).await;
            }
            to.write_all(now).await.map_err(|_| Broken)?;
            bytes = later;
        }
        Ok(())
    }

    /// Waits while frames are held, and then returns whether they pass or are swallowed.
    async fn may_pass(&self) -> Flow {
        let mut settings = self.settings().subscribe();
        // The sender outlives the links, so this cannot fail.
        settings
            .wait_for(|settings| settings.flow != Flow::Hold)
            .await
            .map_or(Flow::Swallow, |settings| settings.flow)
    }

    /// Waits until the other end may learn that this end has closed. If that was swallowed, the other end
    /// gets a reset once frames pass again, as from a host that no longer knows the link.
    async fn end_may_pass(&self) -> Result<(), Broken> {
        let mut settings = self.settings().subscribe();
        let swallowed = self.may_pass().await == Flow::Swallow;
        let _ = settings.wait_for(|settings| settings.flow == Flow::Pass).await;
        if swallowed { Err(Broken) } else { Ok(()) }
    }

    fn settings(&self) -> &watch::Sender<Settings> {
        self.state.settings(self.direction)
    }

    fn tap(&self) -> MutexGuard<'_, Tap> {
        self.tap.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
