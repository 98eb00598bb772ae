//! A table of wrong input: each error names the value and the rule.

use crate::log::Warnings;
use docent::config::{Config, ConfigTree, Counter, SharedCount, SharedValue, TypedNode};
use docent::discovery::{Instance, Membership, Registry};
use docent::election::Election;
use docent::locks::{
    Barrier, DoubleBarrier, Mutex, Partitioner, RwLock, Semaphore, SharedLimit, SharedMutex, TimedLease,
};
use docent::queue::{Queue, SimpleQueue};
use docent::recipe::KeptNode;
use docent::{Client, CreateMode, Error, ErrorKind};
use docent_battery::Backend;
use docent_tests::{builder, connect, soon};
use std::fmt::Display;
use std::time::Duration;

/// Returns the text of the error of a call that must fail.
fn text<T, E: Display>(result: Result<T, E>) -> String {
    match result {
        Ok(_) => panic!("the call must fail"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn connect_strings() {
    for (text, error) in [
        ("", r#"must name at least one server, for example "zk1:2181""#),
        ("http://zk1:2181", r#"must not have a scheme: write "zk1:2181" instead of "http://…""#),
        ("zk1:2181;zk2:2181", "must separate servers with ',', not with ';'"),
        ("zk1:2181 zk2:2181", "must separate servers with ',', not with ' '"),
        ("zk1,,zk2", r#"has the server "", which must have a host name or an IP address"#),
        (":2181", r#"has the server ":2181", which must have a host name or an IP address"#),
        (
            "zk1,zk2:99999",
            r#"has the server "zk2:99999", which must have a port from 1 to 65535 after its ':', or no ':' for port 2181"#,
        ),
        ("::1", r#"has the server "::1", which must have its IPv6 address in brackets, as in "[::1]:2181""#),
        ("[::1", r#"has the server "[::1", which has a '[' without a ']'"#),
        ("zk1/shop,zk2/shop", "must have its chroot once, after the last server, and without a comma"),
        ("zk1/shop/", "chroot must not end with '/'"),
    ] {
        let refused = Client::builder(text).build().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert_eq!(refused.to_string(), format!("connect: connect string {text:?} {error}"));
    }
    for text in [
        "zk1",
        "zk1:2181",
        "zk1, zk2",
        "[::1]",
        "[::1]:99/shop",
        "10.0.0.1:2181/",
        "ZK1.example.com:2181,zk2",
    ] {
        Client::builder(text).build().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn connecting_without_a_server() {
    let server = Backend::Memory.start().await;
    let connect =
        |servers: &str| server.client_builder(servers).operation_timeout(Duration::from_secs(5)).connect();
    let error = soon(connect("127.0.0.1:1,127.0.0.2:1")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(
        error.to_string(),
        "connect: no server answered in time: 127.0.0.1:1: connection refused, 127.0.0.2:1: connection refused"
    );
}

/// Creates each recipe at `path`, and returns what it is called in errors, with the result.
fn recipes(client: &Client, path: &str) -> Vec<(&'static str, Result<(), Error>)> {
    const T: Duration = Duration::from_secs(1);
    vec![
        ("mutex", Mutex::new(client, path).map(drop)),
        ("mutex", SharedMutex::new(client, path).map(drop)),
        ("rw_lock", RwLock::new(client, path).map(drop)),
        ("semaphore", Semaphore::new(client, path, 2).map(drop)),
        ("limit", SharedLimit::new(client, path, 2).map(drop)),
        ("barrier", Barrier::new(client, path).map(drop)),
        ("double_barrier", DoubleBarrier::new(client, path, 2).map(drop)),
        ("lease", TimedLease::new(client, path, T).map(drop)),
        ("partition", Partitioner::builder(client, path, ["a"]).join().map(drop)),
        ("election", Election::builder(client, path).id("a").build().map(drop)),
        ("queue", Queue::<u32>::new(client, path).map(drop)),
        ("queue", SimpleQueue::new(client, path).map(drop)),
        ("registry", Registry::new(client, path).map(drop)),
        ("membership", Membership::new(client, path).map(drop)),
        ("config", Config::<u32>::new(client, path).map(drop)),
        ("config", ConfigTree::<u32>::new(client, path).map(drop)),
        ("counter", Counter::<i64>::new(client, path).map(drop)),
        ("shared_count", SharedCount::new(client, path, 1).map(drop)),
        ("shared_value", SharedValue::new(client, path, "1").map(drop)),
        ("typed_node", TypedNode::<u32>::new(client, path).map(drop)),
    ]
}

#[tokio::test(start_paused = true)]
async fn paths_of_recipes() {
    let server = Backend::Memory.start().await;
    let unplaced = soon(server.client_builder(server.connect_string()).connect()).await.unwrap();
    let namespaced = server.client_builder(server.connect_string()).namespace("/zookeeper/a");
    let namespaced = soon(namespaced.connect()).await.unwrap();
    let servers = r#"must not be "/zookeeper" or below it: these nodes belong to the servers"#;
    let clients = r#"must not be a folder "_docent" or below one: these nodes belong to Docent's clients"#;
    for (client, path, error) in [
        (&unplaced, "", r#"path "" must not be empty"#.to_owned()),
        (&unplaced, "orders", r#"path "orders" must start with '/'"#.to_owned()),
        (&unplaced, "/orders/", r#"path "/orders/" must not end with '/'"#.to_owned()),
        (&unplaced, "/", r#"path "/" must not be the root"#.to_owned()),
        (&unplaced, "/zookeeper/x", format!(r#"path "/zookeeper/x" {servers}"#)),
        (&unplaced, "/_docent/x", format!(r#"path "/_docent/x" {clients}"#)),
        (&unplaced, "/shop/_docent", format!(r#"path "/shop/_docent" {clients}"#)),
        (&namespaced, "/x", format!(r#"path "/x", which is "/zookeeper/a/x" at the servers, {servers}"#)),
    ] {
        for (recipe, result) in recipes(client, path) {
            let refused = result.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput);
            assert_eq!(refused.to_string(), format!("{recipe}: {error}"));
        }
    }
    // Below a namespace, the same name is an ordinary one.
    let shop = server.client_builder(server.connect_string()).namespace("/shop");
    for (recipe, result) in recipes(&soon(shop.connect()).await.unwrap(), "/zookeeper/x") {
        assert!(result.is_ok(), "{recipe}: {}", text(result));
    }
    // Requests of the client itself may use any path.
    soon(unplaced.get("/zookeeper/config")).await.unwrap();
    soon(unplaced.create_or_set("/zookeeper/quota/x", "", CreateMode::Persistent)).await.unwrap();
    soon(unplaced.ensure_path("/_docent/x")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn paths_of_kept_nodes() {
    let server = Backend::Memory.start().await;
    let client = soon(server.client_builder(server.connect_string()).connect()).await.unwrap();
    let servers = r#"must not be "/zookeeper" or below it: these nodes belong to the servers"#;
    let clients = r#"must not be a folder "_docent" or below one: these nodes belong to Docent's clients"#;
    for (path, rule) in [("/zookeeper/x", servers), ("/_docent/x", clients), ("/a/_docent-1f/x-", clients)] {
        let refused = format!("create: path {path:?} {rule}");
        assert_eq!(text(KeptNode::new(&client, path, "")), refused);
        assert_eq!(text(KeptNode::builder(&client, path).data("").take_over().start()), refused);
        for mode in
            [CreateMode::Persistent, CreateMode::EphemeralSequential, CreateMode::PersistentSequential]
        {
            assert_eq!(text(soon(KeptNode::builder(&client, path).mode(mode).keep()).await), refused);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn namespaces() {
    let server = Backend::Memory.start().await;
    let build = |namespace: &str| server.client_builder(server.connect_string()).namespace(namespace).build();
    let rule = r#"must not be a folder "_docent" or below one: these nodes belong to Docent's clients"#;
    for namespace in ["/_docent", "/_docent-shop", "/_docent-shop/a", "/shop/_docent/a"] {
        assert_eq!(text(build(namespace)), format!("connect: namespace {namespace:?} {rule}"));
    }
    assert_eq!(text(build("shop")), r#"connect: path "shop" must start with '/'"#);
    for namespace in ["", "/", "/_docents", "/shop"] {
        assert!(build(namespace).is_ok(), "{namespace}");
    }
}

#[tokio::test(start_paused = true)]
async fn addresses_of_instances() {
    let server = Backend::Memory.start().await;
    let client = connect(&server).await;
    let registry = Registry::new(&client, "/services").unwrap();
    let port = "must not contain a port, which is a separate argument";
    let any =
        "must be one that callers can reach, not the address on which a server listens on all interfaces";
    for (address, rule) in [
        ("", "must not be empty"),
        ("10.0.0.1:80", port),
        ("orders:80", port),
        ("[::1]:80", port),
        ("0.0.0.0", any),
        ("::", any),
        ("[::]", any),
        ("http://10.0.0.1", "must be a host name or an IP address, not a URL"),
        ("10.0.0.1/24", "must not contain '/'"),
        ("two words", "must not contain spaces"),
    ] {
        let instance = || Instance::new("orders", address, 80);
        let rule = format!("address {address:?} {rule}");
        assert_eq!(text(soon(registry.register(instance())).await), format!("register: {rule}"));
        assert_eq!(text(registry.announce(instance())), format!("announce: {rule}"));
        assert_eq!(text(soon(registry.consume("orders", instance())).await), format!("consume: {rule}"));
    }
    let registration =
        soon(registry.register(Instance::new("orders", "10.0.0.1", 80).id("a"))).await.unwrap();
    let update = registration.update(Instance::new("orders", "0.0.0.0", 80).id("a"));
    assert_eq!(text(soon(update).await), format!("update: address \"0.0.0.0\" {any}"));
}

#[tokio::test(start_paused = true)]
async fn a_loopback_address_is_a_warning_unless_the_servers_are_local() {
    let (warnings, _capturing) = Warnings::capture();
    let server = Backend::Memory.start().await;
    let local = connect(&server).await;
    let instance = |address: &str| Instance::new("orders", address, 80).id(address.replace(':', "-"));
    let registry = Registry::new(&local, "/services").unwrap();
    let _local = soon(registry.register(instance("localhost"))).await.unwrap();
    assert_eq!(warnings.with("loopback"), [""; 0]);

    let servers = format!("{},zk2.example.com:2181", server.connect_string());
    let remote = soon(builder(&server, servers).label("shop").connect()).await.unwrap();
    let registry = Registry::new(&remote, "/services").unwrap();
    let mut kept = Vec::new();
    for address in ["127.0.0.1", "::1"] {
        kept.push(soon(registry.register(instance(address))).await.unwrap());
        let lines = warnings.with(&format!("address={address}"));
        let [line] = &*lines else { panic!("{lines:?}") };
        let event = "WARN registering a loopback address, which callers on other hosts cannot reach";
        assert!(line.starts_with(event) && line.contains("service=orders"), "{line}");
    }
    kept.push(registry.announce(instance("10.0.0.1")).unwrap());
    assert_eq!(warnings.with("loopback").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn names_of_services_and_members() {
    let server = Backend::Memory.start().await;
    let client = connect(&server).await;
    let registry = Registry::new(&client, "/services").unwrap();
    assert_eq!(text(soon(registry.service("")).await), r#"service: service name "" must not be empty"#);
    assert_eq!(
        text(soon(registry.typed_service::<u8>("a/b")).await),
        r#"service: service name "a/b" must not contain '/'"#
    );
    assert_eq!(
        text(soon(registry.consumers("..")).await),
        r#"consumers: service name ".." must not be "." or "..""#
    );
    let instance = || Instance::new("orders", "10.0.0.1", 80).id("a").payload(7);
    let _registered = soon(registry.register(instance())).await.unwrap();
    let twice = "\"/services/orders/a\": this client already keeps a node at the path";
    assert_eq!(text(soon(registry.register(instance())).await), format!("register {twice}"));
    assert_eq!(text(registry.announce(instance())), format!("announce {twice}"));
    // Without a payload type, instances with any payload are shown.
    assert_eq!(soon(registry.service("orders")).await.unwrap().instances().iter().count(), 1);

    let group = Membership::new(&client, "/group").unwrap();
    assert_eq!(
        text(soon(group.join("a/b", "")).await),
        r#"join: member id "a/b" must be one segment of a path"#
    );
    let _member = soon(group.join("a", "")).await.unwrap();
    assert_eq!(
        text(soon(group.join("a", "")).await),
        r#"join "/group/a": this client already keeps a node at the path"#
    );
}

#[tokio::test(start_paused = true)]
async fn default_values_of_configurations() {
    let server = Backend::Memory.start().await;
    let client = connect(&server).await;
    let at_least_1 = |value: &u32| if *value > 0 { Ok(()) } else { Err("must be at least 1") };
    let builder = || Config::<u32>::builder(&client, "/limits").default_value(0).validate(at_least_1);
    assert_eq!(text(builder().build()), r#"config: default value of "/limits": rejected by validation"#);
    assert_eq!(
        text(builder().show_rejection_detail().build()),
        r#"config: default value of "/limits": rejected by validation: must be at least 1"#
    );
    let panics = Config::<u32>::builder(&client, "/limits")
        .default_value(0)
        .validate(|_| -> Result<(), String> { panic!("no") });
    assert!(text(panics.build()).starts_with(r#"config: default value of "/limits": "#));
    builder().default_value(1).build().unwrap();
    assert_eq!(
        text(soon(Config::<u32>::new(&client, "/limits").unwrap().subscribe()).await),
        r#"config "/limits": no value is published at the path"#
    );
}
