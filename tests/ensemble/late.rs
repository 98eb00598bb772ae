//! A follower that is cut off for some seconds, with clients on it: their writes wait in its pipe, and come
//! late.

use crate::contest::Contest;
use crate::fleet::leader_of_two;
use crate::jobs::Jobs;
use docent::locks::MutexGuard;
use docent::{Client, Election, ErrorKind, Leadership, Mutex};
use docent_battery::{RealEnsemble, ServerOptions};
use docent_tests::soon;
use futures_util::future::join_all;
use std::time::Duration;

/// How often by default. `DOCENT_TRIALS` says otherwise.
const TRIALS: u32 = 12;
const TIMEOUT: Duration = Duration::from_secs(8);
const TICK: Duration = Duration::from_secs(2);
/// Clients that are at the follower when it is cut off; some more are elsewhere.
const THERE: usize = 4;
const CLIENTS: usize = 6;
const PRODUCERS: usize = 2;
/// From the time a client gives up its link, to the time its session may end.
const SHORTEST_CUT: Duration = Duration::from_millis(3_400);
const LONGEST_CUT: Duration = Duration::from_millis(5_900);
/// Time at which clients that know of the follower alone hear of the other servers: they have called it again
/// by then.
const HEARD: Duration = Duration::from_millis(3_100);
/// A put that gives up while nothing is known yet.
const HURRIED: Duration = Duration::from_secs(4);
/// Until a line goes on, and what came late is undone.
const UNDONE: Duration = Duration::from_secs(60);

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn nothing_is_doubled_and_no_line_blocked_by_writes_that_a_follower_passes_on_late() {
    // They do not find out that one of them is cut off.
    let ensemble = RealEnsemble::start_with(ServerOptions::default().tick(TICK)).await.unwrap();
    let crowd = Crowd::start(&ensemble).await;
    let trials = std::env::var("DOCENT_TRIALS").map_or(TRIALS, |trials| trials.parse().unwrap());
    let mut wrong = Vec::new();
    for trial in 0..=trials {
        let leader = leader_of_two(&ensemble).await;
        let follower = (leader + 1 + trial as usize % 2) % 3;
        crowd.gather_at(&ensemble, follower).await;
        wrong.extend(crowd.is_blocked(trial).await);
        // A put left over from one trial may come to the front of its line only now.
        if !wrong.is_empty() || trial == trials {
            break;
        }
        // Spread over all lengths, in no order.
        let cut = SHORTEST_CUT + (LONGEST_CUT - SHORTEST_CUT) * (trial * 7 % TRIALS) / (TRIALS - 1);
        ensemble.cut_off(follower);
        tokio::time::sleep(HEARD).await;
        crowd.hear_of_others(&ensemble, follower);
        tokio::time::sleep(cut - HEARD).await;
        ensemble.mend();
    }
    wrong.extend(crowd.finish().await);
    assert_eq!(wrong, [""; 0]);
}

/// Clients that want the same things all the time.
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

    /// Moves some of the clients to a server. Half of those know of no other one.
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

    /// Clients that know of one server alone go to the other ones.
    fn hear_of_others(&self, ensemble: &RealEnsemble, server: usize) {
        let others = (1..3).map(|next| ensemble.servers()[(server + next) % 3].connect_string());
        let others = others.collect::<Vec<_>>().join(",");
        for client in &self.clients[..THERE / 2] {
            client.update_servers(&others).unwrap();
        }
    }

    /// Says which lines do not go on.
    async fn is_blocked(&self, trial: u32) -> Vec<String> {
        let locks = join_all(self.locks.iter().map(|lock| lock.is_blocked(UNDONE)));
        let jobs = tokio::time::timeout(UNDONE, self.jobs.go_on());
        let (locks, election, jobs) = tokio::join!(locks, self.election.is_blocked(UNDONE), jobs);
        let queue = jobs.err().map(|_| "the queue is blocked".to_owned());
        let blocked = locks.into_iter().chain([election, queue]).flatten();
        blocked.map(|what| format!("trial {trial}: {what}")).collect()
    }

    /// Ends everything, and returns all that is wrong or left.
    async fn finish(self) -> Vec<String> {
        let mut wrong = Vec::new();
        for lock in self.locks {
            wrong.extend(lock.finish().await);
        }
        wrong.extend(self.election.finish().await);
        wrong.extend(self.jobs.account().await.0);
        wrong.extend(left(&self.clients[CLIENTS - 1]).await);
        for client in self.clients {
            soon(client.close()).await;
        }
        wrong
    }
}

/// Each is wanted by two, so that tickets are drawn and deleted all the time.
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

/// The ephemeral nodes that nobody waits by or holds, once there was time to undo them.
async fn left(client: &Client) -> Vec<String> {
    let mut left = Vec::new();
    let _ = tokio::time::timeout(UNDONE, async {
        loop {
            left = ephemeral_nodes(client).await;
            if left.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    left.into_iter().map(|path| format!("{path} is left")).collect()
}

/// All but the markers of exact writes, which a session keeps.
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
