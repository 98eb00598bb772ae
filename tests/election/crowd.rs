//! Many candidates and many changes of leadership.

use crate::candidate::{Candidate, ELECTION, Log, election, until_candidates};
use docent::node::TransactionResult;
use docent::{Client, CreateMode, Error, ErrorKind, Fence, Leadership};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, soon};
use futures_util::future::join_all;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

const CANDIDATES: usize = 50;
const CHANGES: usize = 100;
const LEDGER: &str = "/ledger";

/// Transaction of each write, with its writer's fence.
type Written = Arc<Mutex<Vec<(i64, Fence)>>>;

/// Writes once under its term, and again when the term is about to end. Resigns when its number is chosen.
async fn work(
    leadership: Arc<Leadership>,
    written: Written,
    mut resigns: watch::Receiver<Option<Fence>>,
) -> Result<(), Error> {
    let fence = leadership.fence();
    loop {
        let write = leadership.transaction().set(LEDGER, fence.to_string(), None);
        match write.commit().await {
            Ok(results) => {
                let [TransactionResult::Set(stat)] = results[..] else { unreachable!() };
                written.lock().unwrap().push((stat.mzxid, fence));
            }
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
            Err(error) => return Err(error),
        }
        if *resigns.borrow() == Some(fence) {
            return Ok(());
        }
        // The sender lives as long as the candidates.
        let _ = resigns.changed().await;
    }
}

/// Returns the leader's node, which is the first in the line.
async fn first(admin: &Client) -> String {
    format!("{ELECTION}/{}", soon(election(admin).candidates()).await.unwrap()[0].name)
}

both_backends! {
    async fn a_hundred_forced_changes_among_fifty_candidates_never_give_two_valid_leaders(backend: Backend) {
        let server = backend.start().await;
        let admin = connect(&server).await;
        admin.create(LEDGER, "", CreateMode::Persistent).await.unwrap();
        let clients = join_all((0..CANDIDATES).map(|_| connect(&server))).await;
        let (log, written) = (Log::new(), Written::default());
        let resigns = watch::Sender::new(None);
        let candidates: Vec<_> = clients.iter().enumerate().map(|(number, client)| {
            let (written, resigns) = (Arc::clone(&written), resigns.subscribe());
            Candidate::with(&election(client), number, &log, move |leadership| {
                work(leadership, Arc::clone(&written), resigns.clone())
            })
        }).collect();
        until_candidates(&election(&admin), CANDIDATES).await;
        for change in 0..CHANGES {
            let (leader, fence, _) = log.term(change + 1).await;
            soon(async {
                while !written.lock().unwrap().iter().any(|(_, by)| *by == fence) {
                    docent_tests::pause().await;
                }
            }).await;
            match change % 3 {
                0 => server.expire(clients[leader].session_id().unwrap()).await.unwrap(),
                1 => admin.delete(&first(&admin).await, None).await.unwrap(),
                _ => drop(resigns.send_replace(Some(fence))),
            }
        }
        log.term(CHANGES + 1).await;
        for candidate in candidates.into_iter().rev() {
            candidate.stop().await.unwrap();
        }
        let mut written = written.lock().unwrap().clone();
        written.sort_unstable();
        assert!(written.windows(2).all(|pair| pair[0].1 <= pair[1].1), "an older leader wrote after a newer one");
        let terms = log.terms();
        assert!(terms.len() > CHANGES);
        assert!(terms.windows(2).all(|pair| pair[0].1 < pair[1].1), "{terms:?}");
        until_candidates(&election(&admin), 0).await;
    }
}
