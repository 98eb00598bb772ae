//! A follower that is cut off for several seconds while clients are connected to it. Their writes wait in the
//! connection between the servers and arrive late.

use crate::contest::Contest;
use crate::fleet::leader_of_two;
use crate::jobs::Jobs;
use docent::locks::MutexGuard;
use docent::{Client, Election, ErrorKind, Leadership, Mutex};
use docent_battery::{RealEnsemble, ServerOptions};
use docent_tests::soon;
use futures_util::future::join_all;
use std::time::Duration;

/// Default number of trials. `DOCENT_TRIALS` overrides it.
const TRIALS: u32 = 12;
const TIMEOUT: Duration = Duration::from_secs(8);
const TICK: Duration = Duration::from_secs(2);
/// Number of clients that are connected to the follower when it is cut off. The rest are connected to other
/// servers.
const THERE: usize = 4;
const CLIENTS: usize = 6;
const PRODUCERS: usize = 2;
/// Bounds of the time for which the follower is cut off: after the shortest a client gives up its link, and
/// after the longest its session may end.
const SHORTEST_CUT: Duration = Duration::from_millis(3_400);
const LONGEST_CUT: Duration = Duration::from_millis(5_900);
/// Time after which clients that know only the follower learn of the other servers. By then they have tried
/// to reconnect to the follower.
const HEARD: Duration = Duration::from_millis(3_100);
/// Timeout of a put that fails while its outcome is still unknown.
const HURRIED: Duration = Duration::from_secs(4);
/// Time limit for a line to make progress, and for late nodes to be deleted.
const UNDONE: Duration = Duration::from_secs(60);

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn writes_that_a_follower_forwards_late_double_nothing_and_block_no_line() {
    // With this tick the servers do not notice that one of them is cut off.
    let ensemble = RealEnsemble::start_with(ServerOptions::default().tick(TICK)).await.unwrap();
    let crowd = Crowd::start(&ensemble).await;
    let trials = std::env::var("DOCENT_TRIALS").map_or(TRIALS, |trials| trials.parse().unwrap());
    let mut wrong = Vec::new();
    for trial in 0..=trials {
        let leader = leader_of_two(&ensemble).await;
        let follower = (leader + 1 + trial as usize % 2) % 3;
        crowd.gather_at(&ensemble, follower).await;
        wrong.extend(crowd.is_blocked(trial).await);
        // An item left over from an earlier trial may reach the front of its line only now.
        if !wrong.is_empty() || trial == trials {
            break;
        }
        // The trials use all durations in the range, in mixed order.
        let cut = SHORTEST_CUT + (LONGEST_CUT - SHORTEST_CUT) * (trial * 7 % TRIALS) / (TRIALS - 1);
        ensemble.cut_off(follower);
        tokio::time::sleep(HEARD).await;
        crowd.switch_servers(&ensemble, follower);
        tokio::time::sleep(cut - HEARD).await;
        ensemble.heal();
    }
    wrong.extend(crowd.finish().await);
    assert_eq!(wrong, [""; 0]);
}

/// Clients that permanently contend for the same things.
struct Crowd {
    clients: Vec<Client>,
    jobs: Jobs,
    locks: Vec<Contest<MutexGuard>>,
    election: Contest<Leadership>,
}

impl Crowd {
    async fn start(ensemble: &RealEnsemble) -> Self {
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let builder = Client::builder(ensemble.connect_string());
            let builder = builder.session_timeout(TIMEOUT).server_tick(TICK).operation_timeout(UNDONE);
            clients.push(soon(builder.connect()).await.unwrap());
        }
        let producers = || clients.iter().cycle().take(CLIENTS * PRODUCERS).enumerate();
        let hurried = |(number, client): (usize, &Client)| match number / CLIENTS % 2 {
            0 => client.clone(),
            _ => client.with_operation_timeout(HURRIED),
        };
        let producers: Vec<_> = producers().map(hurried).collect();
        let mut election = Contest::new("the election");
        for client in &clients {
            let one = Election::new(client, "/election").unwrap();
            election.join(move || one.campaign());
        }
        Self { jobs: Jobs::start(&producers, &clients), locks: locks(&clients), election, clients }
    }

    /// Moves some of the clients to one server. Half of them know no other server.
    async fn gather_at(&self, ensemble: &RealEnsemble, server: usize) {
        let there = &self.clients[..THERE];
        for client in there {
            client.update_servers(&ensemble.servers()[server].connect_string()).unwrap();
        }
        for client in there {
            soon(client.sync("/")).await.unwrap();
        }
        for client in &there[THERE / 2..] {
            client.update_servers(&ensemble.connect_string()).unwrap();
        }
    }

    /// Gives clients that know only one server the addresses of the others.
    fn switch_servers(&self, ensemble: &RealEnsemble, server: usize) {
        let other_servers = (1..3).map(|next| ensemble.servers()[(server + next) % 3].connect_string());
        let other_servers = other_servers.collect::<Vec<_>>().join(",");
        for client in &self.clients[..THERE / 2] {
            client.update_servers(&other_servers).unwrap();
        }
    }

    /// Returns which lines make no progress.
    async fn is_blocked(&self, trial: u32) -> Vec<String> {
        let locks = join_all(self.locks.iter().map(|lock| lock.is_blocked(UNDONE)));
        let jobs = tokio::time::timeout(UNDONE, self.jobs.keep_working());
        let (locks, election, jobs) = tokio::join!(locks, self.election.is_blocked(UNDONE), jobs);
        let queue = jobs.err().map(|_| "the queue is blocked".to_owned());
        let blocked = locks.into_iter().chain([election, queue]).flatten();
        blocked.map(|what| format!("trial {trial}: {what}")).collect()
    }

    /// Ends all work, and returns all violations and leftovers.
    async fn finish(self) -> Vec<String> {
        let mut wrong = Vec::new();
        for lock in self.locks {
            wrong.extend(lock.finish().await);
        }
        wrong.extend(self.election.finish().await);
        wrong.extend(self.jobs.account().await.0);
        wrong.extend(remaining_nodes(&self.clients[CLIENTS - 1]).await);
        for client in self.clients {
            soon(client.close()).await;
        }
        wrong
    }
}

/// Starts two contenders for each lock, so tickets are continually created and deleted.
fn locks(clients: &[Client]) -> Vec<Contest<MutexGuard>> {
    let contest = |number: usize| {
        let path = format!("/locks/{number}");
        let mut contest = Contest::new(&path);
        for client in [&clients[number], &clients[(number + 1) % CLIENTS]] {
            let lock = Mutex::new(client, &path).unwrap();
            contest.join(move || lock.acquire());
        }
        contest
    };
    (0..CLIENTS).map(contest).collect()
}

/// Returns the ephemeral nodes that are left although no contender uses them, after a time limit for their
/// deletion.
async fn remaining_nodes(client: &Client) -> Vec<String> {
    let mut remaining = Vec::new();
    let _ = tokio::time::timeout(UNDONE, async {
        loop {
            remaining = ephemeral_nodes(client).await;
            if remaining.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    remaining.into_iter().map(|path| format!("{path} is left over")).collect()
}

/// Returns all ephemeral nodes except the markers of exact writes, which a session keeps.
async fn ephemeral_nodes(client: &Client) -> Vec<String> {
    soon(client.sync("/")).await.unwrap();
    let (mut folders, mut found) = (vec!["/".to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        let names = match soon(client.children(&folder)).await {
            Ok(children) => children.names,
            Err(error) if error.kind() == ErrorKind::NoNode => continue,
            Err(error) => panic!("{error}"),
        };
        for path in names.iter().map(|name| format!("{}/{name}", folder.trim_end_matches('/'))) {
            match soon(client.exists(&path)).await.unwrap() {
                Some(stat) if stat.owner.is_some() => found.push(path),
                Some(_) if path != "/zookeeper" && path != "/_docent" => folders.push(path),
                _ => {}
            }
        }
    }
    found
}
