//! `docent sessions`.

use crate::docent_command::{PATIENCE, run, servers};
use docent::discovery::{Instance, Registry};
use docent::node::CreateMode;
use docent::{Client, Election, Mutex, Semaphore};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::eventually;

both_backends_in_real_time! {
    async fn each_session_is_listed_with_what_ends_with_it(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let holder = Client::builder(&connect).label("nightly").connect().await.unwrap();
        let waiter = Client::builder(&connect).label("late").connect().await.unwrap();
        let _guard = Mutex::new(&holder, "/locks/a").unwrap().acquire().await.unwrap();
        let _leader = Election::new(&holder, "/election").unwrap().campaign().await.unwrap();
        let registry = Registry::new(&holder, "/services").unwrap();
        let _one = registry.register(Instance::new("orders", "10.0.0.7", 8080).id("one")).await.unwrap();
        holder.create("/mine", "", CreateMode::Ephemeral).await.unwrap();
        let mutex = Mutex::new(&waiter, "/locks/a").unwrap();
        let waiting = tokio::spawn(mutex.acquire());
        let both = async || mutex.participants().await.unwrap().len();
        eventually(PATIENCE, both, |count| *count == 2).await.unwrap();

        let id = |client: &Client| format!("{:#x}", client.session_id().unwrap());
        let table = run(&connect, ["sessions"]).await.ok().stdout;
        let row = |client: &Client| table.lines().find(|line| line.starts_with(&id(client))).unwrap().to_owned();
        assert!(row(&holder).contains("nightly") && row(&waiter).contains("late"), "{table}");
        let stakes = "holds /locks/a, leads /election, registers /services/orders, owns /mine";
        assert!(row(&holder).ends_with(stakes) && row(&waiter).ends_with("waits /locks/a"), "{table}");

        let one = run(&connect, ["sessions", "/", &id(&waiter), "-o", "json"]).await.ok().json();
        let node = &one[0]["nodes"][0];
        assert_eq!((one.len(), &node["recipe"], &node["role"]), (1, &"/locks/a".into(), &"waits".into()), "{one:?}");
        assert!(node["waits_for"].as_str().unwrap().contains("-lock-"), "{one:?}");
        let nodes = run(&connect, ["sessions", &id(&holder)]).await.ok().stdout;
        assert_eq!(nodes.lines().count(), 5, "{nodes}");
        assert!(nodes.contains("/services/orders/one") && nodes.contains("election"), "{nodes}");
        let below = run(&connect, ["sessions", "/services", "-o", "json"]).await.ok().json();
        assert_eq!((below.len(), below[0]["nodes"].as_array().unwrap().len()), (1, 1), "{below:?}");

        let wrong = run(&connect, ["sessions", "0x1"]).await;
        assert!(wrong.code == 66 && wrong.stderr.contains("0x1 owns no ephemeral node"), "{wrong:?}");
        assert_eq!(run(&connect, ["sessions", "orders"]).await.code, 2);
        // What was listed is what ends with the session.
        let listed = run(&connect, ["sessions", &id(&holder), "-o", "json"]).await.ok().json();
        let paths: Vec<_> = listed[0]["nodes"].as_array().unwrap().iter().map(|node| node["path"].as_str().unwrap()).collect();
        let expected = waiter.ephemerals_of(&paths).await;
        assert_eq!(expected, 4, "{paths:?}");
        holder.close().await;
        assert_eq!(waiter.ephemerals_of(&paths).await, 0, "{paths:?}");
        waiting.abort();
        waiter.close().await;
    }

    async fn the_nodes_of_a_semaphore_have_the_role_of_their_client(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let (holder, waiter) = (Client::connect(&connect).await.unwrap(), Client::connect(&connect).await.unwrap());
        let _permit = Semaphore::new(&holder, "/limit", 1).unwrap().acquire().await.unwrap();
        let waiting = tokio::spawn(Semaphore::new(&waiter, "/limit", 1).unwrap().acquire());
        // The waiter has a turn and a ticket.
        let tickets = async || holder.children("/limit/leases").await.unwrap().names.len();
        eventually(PATIENCE, tickets, |count| *count == 2).await.unwrap();
        let sessions = run(&connect, ["sessions", "/limit", "-o", "json"]).await.ok().json();
        for session in &sessions {
            let is_holder = session["session"] == format!("{:#x}", holder.session_id().unwrap());
            for node in session["nodes"].as_array().unwrap() {
                assert_eq!(node["role"], if is_holder { "holds" } else { "waits" }, "{sessions:?}");
            }
        }
        assert_eq!(sessions.len(), 2);
        waiting.abort();
        holder.close().await;
        waiter.close().await;
    }
}

/// Counts nodes.
trait Existing {
    /// Returns how many of the paths are ephemeral nodes.
    async fn ephemerals_of(&self, paths: &[&str]) -> usize;
}

impl Existing for Client {
    async fn ephemerals_of(&self, paths: &[&str]) -> usize {
        let mut count = 0;
        for path in paths {
            self.sync(path).await.unwrap();
            count += usize::from(self.exists(path).await.unwrap().is_some_and(|stat| stat.owner.is_some()));
        }
        count
    }
}
