//! Many followers of one value.

use crate::limits::{Limits, json, limits};
use crate::support::{PATH, config, until};
use docent::config::Change;
use docent::{Client, Config, Subscription};
use docent_battery::{Backend, Proxy, both_backends};
use docent_tests::{builder, connect, soon};
use futures_util::future::try_join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const SESSIONS: usize = 20;
const FOLLOWERS: usize = 10;
const LAST: u32 = 1_000;

/// Number of concurrent writes.
const AT_ONCE: usize = 20;

/// Follows until the last value. Returns the number of received values.
async fn follow(mut subscription: Subscription<Limits>) -> usize {
    let (mut newest, mut count) = (subscription.current().revision().unwrap().mzxid, 0);
    while subscription.current().per_second < LAST || count == 0 {
        match subscription.changed().await {
            Some(Ok(Change::Value(snapshot))) => {
                let mzxid = snapshot.revision().unwrap().mzxid;
                assert!(mzxid > newest, "{mzxid} arrived after {newest}");
                assert!(subscription.current().revision().unwrap().mzxid >= mzxid);
                (newest, count) = (mzxid, count + 1);
                if snapshot.per_second == LAST {
                    break;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    count
}

/// Disturbs the followers at each fifth of the values: resets all links three times, and ends every session
/// once.
async fn disturb(
    written: &AtomicU32,
    proxy: &Proxy,
    clients: &[Client],
    server: &docent_battery::TestServer,
) {
    for quarter in 1..=4 {
        while written.load(Ordering::SeqCst) < quarter * LAST / 5 {
            docent_tests::pause().await;
        }
        if quarter == 3 {
            for client in clients {
                if let Some(session) = client.session_id() {
                    server.expire(session).await.unwrap();
                }
            }
        } else {
            proxy.reset().await;
        }
    }
}

both_backends! {
    async fn two_hundred_followers_on_twenty_sessions_all_end_at_the_last_of_a_thousand_values(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let operator = connect(&server).await;
        let publisher = Config::<Limits>::builder(&operator, PATH).history(0).build().unwrap();
        soon(publisher.publish(&limits(1))).await.unwrap();
        let (mut clients, mut followers, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..SESSIONS {
            let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
            let config = config(&client);
            for _ in 0..FOLLOWERS {
                let subscription = soon(config.subscribe()).await.unwrap();
                kept.push(subscription.clone());
                followers.push(tokio::spawn(follow(subscription)));
            }
            clients.push(client);
        }
        let written = Arc::new(AtomicU32::new(1));
        let writing = async {
            for first in (2..=LAST).step_by(AT_ONCE) {
                let last = LAST.min(first + u32::try_from(AT_ONCE).unwrap() - 1);
                // All writes are sent before the first reply, and applied in this order.
                let writes = (first..=last).map(|value| operator.set(PATH, json(value), None));
                try_join_all(writes).await.unwrap();
                written.store(last, Ordering::SeqCst);
            }
        };
        tokio::join!(writing, disturb(&written, &proxy, &clients, &server));
        for follower in followers {
            assert!(soon(follower).await.unwrap() > 0);
        }
        for subscription in &kept {
            until(subscription, LAST).await;
        }
        // The last value may arrive just before a session ends.
        docent_tests::until(async || clients.iter().all(|client| client.state().current().generation >= 2)).await;
    }
}
