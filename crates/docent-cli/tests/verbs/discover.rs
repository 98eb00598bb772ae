//! `docent discover`.

use crate::docent_command::{Running, run, servers};
use docent::discovery::{Instance, Registry, RegistryLayout};
use docent::{Client, CreateMode};
use docent_battery::{Backend, both_backends_in_real_time};
use rustix::process::Signal;
use serde_json::{Value, json};

both_backends_in_real_time! {
    async fn services_and_instances_are_listed_in_each_form(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let meta = json!({"zone": "a\u{1b}[2J"});
        let one = Instance::new("orders", "10.0.0.7", 8080).id("one").weight(3).payload(meta);
        let two = Instance::new("orders", "10.0.0.8", 8080).id("two").enabled(false);
        let _one = registry.register(one).await.unwrap();
        let _two = registry.register(two).await.unwrap();

        assert_eq!(run(&connect, ["discover"]).await.ok().stdout, "orders\n");
        let hosts = run(&connect, ["discover", "orders", "-o", "hostport"]).await.ok();
        assert_eq!(hosts.stdout, "10.0.0.7:8080\n", "a disabled instance gets no work");
        run(&connect, ["discover", "orders", "--at-least", "1"]).await.ok();
        let few = run(&connect, ["discover", "orders", "-o", "hostport", "--at-least", "2"]).await;
        assert_eq!((few.code, &*few.stdout), (75, "10.0.0.7:8080\n"), "{few:?}");
        assert!(few.stderr.contains("1 instances of \"orders\" may be given work, fewer than 2"), "{few:?}");
        for arguments in [&["discover", "order"][..], &["discover", "order", "--at-least", "1"]] {
            let unknown = run(&connect, arguments).await;
            assert!(unknown.code == 66 && unknown.stderr.contains("no service \"order\" below /services"), "{unknown:?}");
        }
        let table = run(&connect, ["discover", "orders"]).await.ok().stdout;
        let rows: Vec<_> = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(rows[1][..4], ["one", "10.0.0.7:8080", "enabled", "3"]);
        assert_eq!(rows[2], ["two", "10.0.0.8:8080", "disabled"]);
        assert!(!table.contains('\u{1b}'), "{table}");
        let wide = run(&connect, ["discover", "orders", "-o", "wide"]).await.ok().stdout;
        let columns: Vec<_> = wide.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(columns, ["ID", "ADDRESS", "STATE", "WEIGHT", "TYPE", "SSL", "PORT", "REGISTERED", "PAYLOAD"]);
        let one = wide.lines().nth(1).unwrap();
        assert!(one.contains("DYNAMIC") && one.contains(":") && one.contains("Z"), "{wide}");
        let json = run(&connect, ["discover", "orders", "-o", "json"]).await.ok().json();
        assert_eq!((&json[0]["id"], &json[0]["port"], &json[1]["state"]), (&"one".into(), &8080.into(), &"disabled".into()));
        client.close().await;
    }

    async fn in_dubbos_layout_the_weights_and_states_are_those_after_the_rules(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let registry = Registry::builder(&client, "/dubbo").layout(RegistryLayout::Dubbo).build().unwrap();
        let _one = registry.register(Instance::new("orders", "10.0.0.7", 1).id("one")).await.unwrap();
        let _two = registry.register(Instance::new("orders", "10.0.0.7", 2).id("two")).await.unwrap();
        for rule in ["1%2Forders%3Fdisabled%3Dtrue", "2%2Forders%3Fweight%3D30", "2%2Forders%3Fweight%3Dheavy"] {
            let path = format!("/dubbo/orders/configurators/override%3A%2F%2F10.0.0.7%3A{rule}");
            client.create(&path, "", CreateMode::Persistent).await.unwrap();
        }
        let document = "{key: other, configs: [{side: provider, parameters: {weight: 1}}]}";
        client.create("/dubbo/config/dubbo/other::.configurators", document, CreateMode::Persistent).await.unwrap();
        let in_dubbo = ["discover", "--root", "/dubbo", "--layout", "dubbo"];
        assert_eq!(run(&connect, in_dubbo).await.ok().stdout, "orders\n", "the folder of rules is no service");
        let orders = |format| in_dubbo.into_iter().chain(["orders", "-o", format]);
        let listed = run(&connect, orders("json")).await.ok();
        let state = |one: &Value| (one["port"].clone(), one["weight"].clone(), one["state"] == "enabled");
        let mut states: Vec<_> = listed.json().iter().map(state).collect();
        states.sort_by_key(|(port, ..)| port.as_u64());
        assert_eq!(states, [(json!(1), json!(100), false), (json!(2), json!(30), true)]);
        assert!(listed.stderr.contains("heavy") && listed.stderr.contains("weight must be a number"), "{listed:?}");
        assert_eq!(run(&connect, orders("hostport")).await.ok().stdout, "10.0.0.7:2\n");
        client.close().await;
    }

    async fn an_address_cannot_forge_lines_or_steer_a_terminal(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let _good = registry.register(Instance::new("orders", "10.0.0.7", 8080).id("good")).await.unwrap();
        let forged = Instance::new("orders", "10.6.6.6:1\n\u{9b}2J10.6.6.7", 8080).id("forged").payload(json!(1));
        // The library refuses to announce such an instance, but other programs may write anything.
        let data = serde_json::to_vec(&forged).unwrap();
        client.create("/services/orders/forged", data, CreateMode::Persistent).await.unwrap();
        let hosts = run(&connect, ["discover", "orders", "-o", "hostport"]).await.ok();
        assert_eq!(hosts.stdout, "10.0.0.7:8080\n");
        assert!(hosts.stderr.contains("skipped") && hosts.stderr.contains("10.6.6.6"), "{hosts:?}");
        let json = run(&connect, ["discover", "orders", "-o", "json"]).await.ok();
        assert!(json.stdout.contains("\\u009b2J") && !json.stdout.contains('\u{9b}'), "{json:?}");
        client.close().await;
    }

    async fn changes_are_followed_and_passed_to_a_command(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let mut watch = Running::start(&connect, ["discover", "orders", "--watch", "-o", "json"]);
        let hook = "tr '\\n' ' '; echo .";
        let mut exec = Running::start(&connect, ["discover", "orders", "--exec", "sh", "-c", hook]);
        let count = |line: String| serde_json::from_str::<Value>(&line).unwrap()["instances"].as_array().unwrap().len();
        assert_eq!(count(watch.line().await), 0);
        assert_eq!(exec.line().await, ".");
        let instance = Instance::new("orders", "10.0.0.7", 8080).id("one");
        let registration = registry.register(instance).await.unwrap();
        assert_eq!(count(watch.line().await), 1);
        assert_eq!(exec.line().await, "10.0.0.7:8080 .");
        registration.deregister().await.unwrap();
        assert_eq!(count(watch.line().await), 0);
        assert_eq!(exec.line().await, ".");
        assert_eq!(watch.stop(Signal::TERM).await, 143);
        assert_eq!(exec.stop(Signal::TERM).await, 143);
        client.close().await;
    }

    async fn each_set_of_host_and_port_lines_ends_with_an_empty_one(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let mut watch = Running::start(&connect, ["discover", "orders", "--watch", "-o", "hostport"]);
        assert_eq!(watch.line().await, "");
        let _one = registry.register(Instance::new("orders", "10.0.0.7", 8080).id("one")).await.unwrap();
        assert_eq!((watch.line().await, watch.line().await), ("10.0.0.7:8080".to_owned(), String::new()));
        assert_eq!(watch.stop(Signal::TERM).await, 143);
        assert_eq!(run(&connect, ["discover", "orders", "-o", "hostport"]).await.ok().stdout, "10.0.0.7:8080\n");
        client.close().await;
    }

    async fn a_command_that_cannot_be_run_ends_the_watch(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        assert_eq!(run(&connect, ["discover", "orders", "--exec", "no-such-program"]).await.code, 127);
        assert_eq!(run(&connect, ["discover", "orders", "--exec", "/"]).await.code, 126);
    }
}

#[tokio::test]
async fn hosts_and_ports_are_an_output_of_discover_alone() {
    for format in ["hostport", "file-sd"] {
        let ended = run("127.0.0.1:1", ["ls", "-o", format]).await;
        let text = format!("docent: --output {format} works with `discover` only\n");
        assert_eq!((ended.code, ended.stderr), (2, text));
    }
}
