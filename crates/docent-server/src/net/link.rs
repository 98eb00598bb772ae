use super::hub::{Hub, Progress};
use bytes::BytesMut;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

/// How much is asked of the transport at a time.
const CHUNK: usize = 16 << 10;

/// How long a client has to read the last words of a link that is being closed.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Runs one link until either side ends it.
pub(crate) async fn run<Io>(io: Io, hub: Arc<Hub>, id: u64, wake: Arc<Notify>, handshake: Duration)
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let (mut reader, mut writer) = tokio::io::split(io);
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let too_late = Instant::now() + handshake;
    loop {
        let progress = hub.receive(id, &mut input);
        if output.is_empty() {
            output = hub.take_output(id);
        }
        match progress {
            Progress::Cut => break,
            Progress::Ending => {
                output.unsplit(hub.take_output(id));
                // A client that does not read is no reason to keep the link: the result does not matter.
                let _ = timeout(LAST_WORDS, end(&mut writer, &mut output)).await;
                break;
            }
            Progress::Hungry | Progress::Full => {}
        }
        if progress == Progress::Hungry {
            input.reserve(CHUNK);
        }
        tokio::select! {
            () = wake.notified() => {}
            read = reader.read_buf(&mut input), if progress == Progress::Hungry => match read {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            },
            written = writer.write_buf(&mut output), if !output.is_empty() => match written {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            },
            () = sleep_until(too_late), if !hub.is_attached(id) => break,
        }
    }
    hub.lock().cut(id);
}

async fn end<W: AsyncWrite + Unpin>(writer: &mut W, output: &mut BytesMut) -> std::io::Result<()> {
    writer.write_all_buf(output).await?;
    writer.shutdown().await
}
