//! Coordination as services write it with Docent.

use crate::hostile;
use docent::client::{ClientBuilder, ParentKind};
use docent::discovery::Registration;
use docent::locks::MutexGuard;
use docent::{
    Client, Config, CreateMode, Election, Instance, Membership, Mutex, Queue, Registry, RwLock, Semaphore,
};
use docent_battery::TestServer;
use docent_tests::{builder, child_count, soon, until};
use serde_json::{Value, json};
use std::any::Any;
use tokio::task::JoinSet;

/// A shop with two processes, `billing` and `reports`, and a client for the console.
///
/// `billing` holds what can be held, and `reports` waits for it.
pub(crate) struct Shop {
    pub(crate) console: Client,
    pub(crate) billing: Client,
    pub(crate) reports: Client,
    pub(crate) report_lock: MutexGuard,
    pub(crate) orders: Registration,
    kept: Vec<Box<dyn Any>>,
    waiting: JoinSet<()>,
}

impl Shop {
    pub(crate) async fn open(server: &TestServer) -> Self {
        let console = watcher(server).await;
        let billing = process(server, "billing").await;
        let reports = process(server, "reports").await;
        let report_lock = soon(Mutex::new(&billing, "/shop/report").unwrap().acquire()).await.unwrap();
        let registry = Registry::new(&billing, "/services").unwrap();
        let orders = Instance::new("orders", "10.0.0.7", 8080).id("a").weight(3).payload(["zone-a"]);
        let orders = soon(registry.register(orders)).await.unwrap();
        let (kept, waiting) = (Vec::new(), JoinSet::new());
        let mut shop = Self { console, billing, reports, report_lock, orders, kept, waiting };
        shop.fill_locks().await;
        shop.fill_election().await;
        shop.fill_services().await;
        shop.fill_queue().await;
        shop.fill_values().await;
        shop
    }

    async fn fill_locks(&mut self) {
        self.wait(Mutex::new(&self.reports, "/shop/report").unwrap().acquire());
        until(async || child_count(&self.console, "/shop/report").await == 2).await;
        self.wait(Mutex::new(&self.billing, "/shop/report").unwrap().acquire());
        until(async || child_count(&self.console, "/shop/report").await == 3).await;
        let [one, other] =
            [&self.billing, &self.reports].map(|one| RwLock::new(one, "/shop/prices").unwrap());
        self.keep(soon(one.read()).await.unwrap());
        self.wait(other.write());
        let [one, other] =
            [&self.billing, &self.reports].map(|one| Semaphore::new(one, "/shop/licences", 2).unwrap());
        self.keep(soon(one.acquire_many(2)).await.unwrap());
        self.wait(other.acquire());
    }

    async fn fill_election(&mut self) {
        let candidate = |client, id| Election::builder(client, "/shop/leader").id(id).build().unwrap();
        let (leader, next) = (candidate(&self.billing, "host-1"), candidate(&self.reports, "host-2"));
        self.keep(soon(leader.campaign()).await.unwrap());
        self.wait(async move { next.campaign().await });
    }

    async fn fill_services(&mut self) {
        let registry = Registry::new(&self.reports, "/services").unwrap();
        for instance in [
            Instance::new("orders", "10.0.0.8", 8080).id("b").enabled(false).payload(["zone-b"]),
            Instance::new("search", "10.0.0.8", 9200).id("c").payload(["zone-b"]),
        ] {
            self.keep(soon(registry.register(instance)).await.unwrap());
        }
        let group = Membership::new(&self.billing, "/shop/workers").unwrap();
        self.keep(soon(group.join("host-7", "10.0.0.7")).await.unwrap());
    }

    async fn fill_queue(&mut self) {
        let jobs = Queue::<String>::new(&self.billing, "/shop/jobs").unwrap();
        for item in ["broken job", "first job", "second job"] {
            soon(jobs.put(&item.to_owned())).await.unwrap();
        }
        soon(soon(jobs.take()).await.unwrap().reject("no such customer")).await.unwrap();
        self.keep(soon(jobs.take()).await.unwrap());
    }

    async fn fill_values(&mut self) {
        let limits = self.limits();
        for limit in [10, 20] {
            soon(limits.publish(&json!({ "burst": 1, "limit": limit }))).await.unwrap();
        }
    }

    /// Adds names, payloads and identities that would be markup or script.
    pub(crate) async fn add_hostile(&mut self, server: &TestServer) {
        let attacker = process(server, hostile::LABEL).await;
        let nameless = as_process(server, "nameless").identity(hostile::IDENTITY);
        let nameless = soon(nameless.connect()).await.unwrap();
        let path = format!("/{}/lock", hostile::NAME);
        self.keep(soon(Mutex::new(&attacker, &path).unwrap().acquire()).await.unwrap());
        self.wait(Mutex::new(&nameless, &path).unwrap().acquire());
        let election = Election::builder(&attacker, &format!("/{}/leader", hostile::NAME));
        self.keep(soon(election.id(hostile::IDENTITY).build().unwrap().campaign()).await.unwrap());
        let instance = json!({
            "name": hostile::NAME, "id": hostile::NAME, "address": hostile::HOST, "port": 80,
            "payload": [hostile::TEXT],
        });
        let path = format!("/services/{}", hostile::NAME);
        soon(attacker.create(&path, "", CreateMode::Persistent)).await.unwrap();
        let path = format!("{path}/{}", hostile::NAME);
        soon(attacker.create(&path, instance.to_string(), CreateMode::Ephemeral)).await.unwrap();
        let jobs = Queue::<String>::new(&attacker, &format!("/{}/jobs", hostile::NAME)).unwrap();
        for _ in 0..2 {
            soon(jobs.put(&hostile::TEXT.to_owned())).await.unwrap();
        }
        soon(soon(jobs.take()).await.unwrap().reject(hostile::TEXT)).await.unwrap();
        let path = format!("/{}/limits", hostile::NAME);
        let limits = Config::<String>::builder(&attacker, &path).history(5).build().unwrap();
        for value in [hostile::TEXT, hostile::IDENTITY] {
            soon(limits.publish(&value.to_owned())).await.unwrap();
        }
        let group = Membership::new(&attacker, &format!("/{}/workers", hostile::NAME)).unwrap();
        self.keep(soon(group.join(hostile::NAME, hostile::TEXT)).await.unwrap());
        self.keep((attacker, nameless));
    }

    /// The configuration of the shop.
    pub(crate) fn limits(&self) -> Config<Value> {
        Config::builder(&self.billing, "/shop/limits").history(5).build().unwrap()
    }

    /// Registers an instance of `orders` as a client does that does not keep it present.
    pub(crate) async fn add_instance(&self, id: &str) {
        let data = soon(self.console.get(&self.orders.path())).await.unwrap().data;
        let mut data: Value = serde_json::from_slice(&data).unwrap();
        data["id"] = id.into();
        let path = format!("/services/orders/{id}");
        soon(self.billing.create(&path, data.to_string(), CreateMode::Ephemeral)).await.unwrap();
    }

    fn keep(&mut self, kept: impl Any) {
        self.kept.push(Box::new(kept));
    }

    /// Starts to wait for something, which is kept once it is had.
    fn wait<T: Send + 'static>(&mut self, waiting: impl Future<Output = T> + Send + 'static) {
        self.waiting.spawn(async move {
            let _had = waiting.await;
            std::future::pending::<()>().await;
        });
    }
}

/// Opens the client of a process that names itself.
pub(crate) async fn process(server: &TestServer, label: &str) -> Client {
    soon(as_process(server, label).connect()).await.unwrap()
}

/// Opens a client for the console.
pub(crate) async fn watcher(server: &TestServer) -> Client {
    process(server, "console").await
}

/// Empty parents stay, so that no test depends on when the servers delete them.
fn as_process(server: &TestServer, label: &str) -> ClientBuilder {
    builder(server, server.connect_string()).label(label).parents(ParentKind::Persistent)
}
