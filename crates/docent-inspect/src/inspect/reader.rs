use super::{Inspector, Tree};
use crate::nodes::{Answer, Data, Folder, Known, Read};
use docent_core::{Client, Error, ErrorKind};
use futures_util::stream::{self, StreamExt};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

/// Reads until all places of the tree were inspected.
///
/// # Errors
/// Errors that are not about one node: `InvalidInput`, `Timeout`, `Closed`. The tree keeps what was read.
///
/// # Cancel safety
/// This function is cancel safe. The tree keeps what was read.
pub(crate) async fn complete(
    inspector: &Inspector,
    tree: &mut Tree,
    now: Option<SystemTime>,
) -> Result<(), Error> {
    let Inspector { client, limits, .. } = inspector;
    loop {
        let missing = tree.advance(now);
        if missing.is_empty() {
            return Ok(());
        }
        let bytes = AtomicUsize::new(tree.nodes().bytes());
        let reads = stream::iter(missing).map(|read| one(client, read, &bytes, limits.data_bytes));
        let mut answers = reads.buffer_unordered(limits.in_flight.max(1));
        while let Some(answer) = answers.next().await {
            let (read, answer) = answer?;
            tree.answer(read, answer);
        }
    }
}

/// Reads a node, or only its stat once `most` bytes of data were read.
async fn one(client: &Client, read: Read, bytes: &AtomicUsize, most: usize) -> Result<(Read, Answer), Error> {
    let answer = match &read {
        Read::Children(path) => {
            let listed = client.children(path).await.map(|it| Folder::new(it.names, it.stat));
            Answer::Folder(known(listed)?)
        }
        Read::Data(path) if bytes.load(Ordering::Relaxed) >= most => {
            Answer::Data(match known(client.exists(path).await)? {
                Known::Present(Some(stat)) => Known::Present(Data { bytes: None, stat }),
                Known::Refused => Known::Refused,
                Known::Present(None) | Known::Absent | Known::LeftOut => Known::Absent,
            })
        }
        Read::Data(path) => {
            let node = client.get(path).await.map(|it| Data { bytes: Some(it.data), stat: it.stat });
            if let Ok(Data { bytes: Some(data), .. }) = &node {
                bytes.fetch_add(data.len(), Ordering::Relaxed);
            }
            Answer::Data(known(node)?)
        }
    };
    Ok((read, answer))
}

/// Converts an answer. A refusal or absence of one node does not affect others.
fn known<T>(answer: Result<T, Error>) -> Result<Known<T>, Error> {
    match answer {
        Ok(value) => Ok(Known::Present(value)),
        Err(error) => match error.kind() {
            ErrorKind::NoNode => Ok(Known::Absent),
            ErrorKind::NoAuth => Ok(Known::Refused),
            // The reply is larger than this client accepts.
            ErrorKind::TooLarge => Ok(Known::LeftOut),
            _ => Err(error),
        },
    }
}
