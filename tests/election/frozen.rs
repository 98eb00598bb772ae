//! Leaders whose process or thread is suspended.

use crate::candidate::{Candidate, Log, election};
use crate::contender::Elections;
use docent::Error;
use docent_battery::{Backend, battery, both_backends_in_real_time};
use docent_tests::{SHORT_SESSION, builder};
use std::future::pending;
use std::time::Duration;

both_backends_in_real_time! {
    async fn a_resumed_leader_learns_at_its_first_use_whether_it_still_leads(backend: Backend) {
        battery::freezes(&Elections, &backend.start().await).await;
    }

    async fn an_error_of_work_whose_leadership_is_lost_is_a_consequence_and_a_new_term_follows(backend: Backend) {
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let log = Log::new();
        let terms = log.clone();
        let candidate = Candidate::with(&election(&client), 0, &log, move |leadership| {
            let is_first = terms.terms().len() == 1;
            async move {
                if !is_first {
                    return pending().await;
                }
                // Code that blocks the thread starves the heartbeat, so the work is the first to notice the
                // loss.
                while leadership.is_held() {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(Error::invalid_input("work", "the leadership is lost"))
            }
        });
        log.term(2).await;
        candidate.stop().await.unwrap();
    }
}
