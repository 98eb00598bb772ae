//! Queues, services, groups, values and barriers.

use docent::inspect::{Inspector, InstanceState, Kind, NumberFormat, QueueLayout, Recipe, Writer};
use docent::{
    Barrier, Client, Config, Counter, Instance, Membership, Queue, Registry, SharedValue, SimpleQueue,
};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, soon, until};

async fn recipe(client: &Client, path: &str) -> Recipe {
    soon(Inspector::new(client).path(path)).await.unwrap().recipe
}

async fn kind(client: &Client, path: &str) -> Kind {
    recipe(client, path).await.kind()
}

both_backends! {
    async fn a_queue_reports_depth_claims_dead_letters_and_head(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = Queue::<String>::new(&client, "/q").unwrap();
        for item in ["one", "two", "three"] {
            soon(jobs.put(&item.to_owned())).await.unwrap();
        }
        let rejected = soon(jobs.take()).await.unwrap();
        soon(rejected.reject("no")).await.unwrap();
        let delivery = soon(jobs.take()).await.unwrap();
        let Recipe::Queue(queue) = recipe(&client, "/q").await else { panic!("no queue") };
        assert_eq!((queue.layout, queue.depth), (QueueLayout::Docent, 2));
        assert_eq!((queue.claimed, queue.dead), (Some(1), Some(1)));
        let letter = &queue.dead_letters[0];
        assert_eq!((letter.reason.as_deref(), letter.detail.as_deref()), (Some("rejected"), Some("no")));
        assert!(letter.since.is_some() && letter.item.is_some());
        assert_eq!(queue.claims[0].session, client.session_id());
        let head = queue.head.unwrap();
        assert_ne!(head.name, queue.claims[0].item);
        assert!(head.since.is_some());
        soon(delivery.ack()).await.unwrap();
    }

    async fn the_simple_queue_reports_depth_and_head(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let queue = SimpleQueue::new(&client, "/q").unwrap();
        soon(queue.put("one")).await.unwrap();
        soon(queue.put("two")).await.unwrap();
        let Recipe::Queue(queue) = recipe(&client, "/q").await else { panic!("no queue") };
        assert_eq!((queue.layout, queue.depth, queue.head.unwrap().size), (QueueLayout::Simple, 2, Some(3)));
    }

    async fn idle_consumers_are_reported(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = Queue::<String>::new(&client, "/q").unwrap();
        let taking = tokio::spawn(async move { jobs.take().await.is_ok() });
        let idle = async || match recipe(&client, "/q").await {
            Recipe::Queue(queue) => queue.consumers.iter().any(|one| one.session == client.session_id()),
            _ => false,
        };
        until(idle).await;
        taking.abort();
    }

    async fn services_report_their_instances_and_a_registry_its_services(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let registry = Registry::new(&client, "/services").unwrap();
        let on = Instance::new("orders", "10.0.0.7", 8080).id("a").weight(3).payload(["zone-a"]);
        let off = Instance::new("orders", "10.0.0.8", 8080).id("b").enabled(false);
        let _registered = (soon(registry.register(on)).await.unwrap(), soon(registry.register(off)).await.unwrap());
        let Recipe::Service(service) = recipe(&client, "/services/orders").await else { panic!("no service") };
        let [on, off] = &service.instances[..] else { panic!("{service:?}") };
        assert_eq!((on.state, on.weight, on.session), (InstanceState::Enabled, Some(3), client.session_id()));
        assert_eq!(on.payload.as_ref().unwrap().json.as_ref().unwrap()[0], "zone-a");
        assert_eq!((off.state, off.address.as_deref()), (InstanceState::Disabled, Some("10.0.0.8")));
        let Recipe::Registry(registry) = recipe(&client, "/services").await else { panic!("no registry") };
        assert_eq!((registry.services[0].name.as_str(), registry.services[0].instances), ("orders", Some(2)));
    }

    async fn a_group_reports_its_members(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let group = Membership::new(&client, "/g").unwrap();
        let _member = soon(group.join("host-7", "10.0.0.7")).await.unwrap();
        let Recipe::Membership(group) = recipe(&client, "/g").await else { panic!("no group") };
        assert_eq!((group.members[0].id.as_str(), group.members[0].session), ("host-7", client.session_id()));
    }

    async fn values_are_recognized_by_their_content(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = Config::<String>::builder(&client, "/c").history(3).build().unwrap();
        for value in ["one", "two", "three"] {
            soon(config.publish(&value.to_owned())).await.unwrap();
        }
        let Recipe::Config(told) = recipe(&client, "/c").await else { panic!("no configuration") };
        assert_eq!((told.version, told.size, told.history.len()), (2, 7, 2));

        let counter = Counter::<i64>::new(&client, "/n").unwrap();
        soon(counter.increment()).await.unwrap();
        let Recipe::Counter(told) = recipe(&client, "/n").await else { panic!("no counter") };
        assert_eq!((told.number.as_str(), told.format), ("1", NumberFormat::I64));

        let value = SharedValue::new(&client, "/v", "first").unwrap();
        soon(value.set("some text")).await.unwrap();
        assert_eq!(kind(&client, "/v").await, Kind::Value);

        soon(Barrier::new(&client, "/b").unwrap().set()).await.unwrap();
        let report = soon(Inspector::new(&client).path("/b")).await.unwrap();
        assert_eq!((report.kind(), &report.writers[..]), (Kind::Barrier, &[Writer::Docent][..]));
        assert_eq!(kind(&client, "/nothing").await, Kind::Absent);
    }
}
