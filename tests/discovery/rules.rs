//! Rules of Dubbo, which change the weights of providers and disable them.

use crate::layout::registry;
use docent::discovery::{PickPolicy, Registration, RegistryLayout, ServiceChange, ServiceChanges};
use docent::node::{Acl, Permissions};
use docent::{Client, CreateMode, Instance, Registry, Service};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{SHORT_SESSION, builder, connect, soon, until};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::fmt::Write;

const NAME: &str = "com.shop.Orders";
const FOLDER: &str = "/dubbo/com.shop.Orders/configurators";
const CONFIG: &str = "/dubbo/config/dubbo";

/// Address of the first provider, at port 1.
const FIRST: &str = "10.0.0.7:1";

/// Returns the path of a rule in the folder of the service.
fn rule(text: &str) -> String {
    let mut name = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => {
                name.push(char::from(byte));
            }
            _ => write!(name, "%{byte:02X}").unwrap(),
        }
    }
    format!("{FOLDER}/{name}")
}

fn disabled(host: &str) -> String {
    rule(&format!("override://{host}/{NAME}?category=configurators&dynamic=false&disabled=true"))
}

fn weight(host: &str, weight: &str) -> String {
    rule(&format!(
        "override://{host}/{NAME}?category=configurators&dynamic=false&enabled=true&weight={weight}"
    ))
}

async fn publish(client: &Client, path: &str) {
    soon(client.create(path, "", CreateMode::Persistent)).await.unwrap();
}

async fn withdraw(client: &Client, path: &str) {
    soon(client.delete(path, None)).await.unwrap();
}

/// Registers providers of the applications `one` and `two`, at the ports 1 and 2.
async fn providers(client: &Client) -> [Registration; 2] {
    let provider = |application: &str, port| {
        let payload = BTreeMap::from([("application", application.to_owned())]);
        registry(client).register(Instance::new(NAME, "10.0.0.7", port).id(port.to_string()).payload(payload))
    };
    [soon(provider("one", 1)).await.unwrap(), soon(provider("two", 2)).await.unwrap()]
}

async fn view(client: &Client) -> Service {
    soon(registry(client).service_builder(NAME).policy(PickPolicy::Weighted).open()).await.unwrap()
}

/// Returns the port, the weight and the state of each instance.
fn shown(view: &Service) -> Vec<(u16, u32, bool)> {
    let instances = view.instances();
    let shown = |instance: &Instance| (instance.port.unwrap(), instance.weight.unwrap(), instance.enabled);
    let mut shown: Vec<_> = instances.all().map(|(_, instance)| shown(instance)).collect();
    shown.sort_unstable();
    shown
}

async fn until_shown(view: &Service, expected: [(u32, bool); 2]) {
    let expected = [(1, expected[0].0, expected[0].1), (2, expected[1].0, expected[1].1)];
    until(async || shown(view) == expected).await;
}

/// Returns the ports of many picks, each once.
fn picked(view: &Service) -> Vec<u16> {
    let mut ports: Vec<_> = (0..200).map(|_| view.pick().unwrap().port.unwrap()).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Returns the next change with the port of its instance, skipping changes of the view's freshness.
async fn next(changes: &mut ServiceChanges<()>) -> String {
    loop {
        match soon(changes.next()).await.unwrap().unwrap() {
            ServiceChange::Added(instance) => return format!("added {}", instance.port.unwrap()),
            ServiceChange::Updated(instance) => return format!("updated {}", instance.port.unwrap()),
            ServiceChange::Removed(instance) => return format!("removed {}", instance.port.unwrap()),
            ServiceChange::Unreadable(unreadable) => return unreadable.to_string(),
            _ => {}
        }
    }
}

fn rejected(view: &Service) -> Vec<String> {
    view.instances().unreadable().map(ToString::to_string).collect()
}

both_backends! {
    async fn a_rule_in_the_folder_applies_from_its_creation_to_its_deletion(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _providers = providers(&client).await;
        publish(&other, &disabled(FIRST)).await;
        let view = view(&client).await;
        // The rule was read before the view was ready.
        assert_eq!(shown(&view), [(1, 100, false), (2, 100, true)]);
        assert_eq!((view.instances().len(), picked(&view)), (1, vec![2]));
        let mut changes = view.changes();
        assert_eq!(next(&mut changes).await, "added 2");
        withdraw(&other, &disabled(FIRST)).await;
        assert_eq!(next(&mut changes).await, "added 1");
        assert_eq!((shown(&view), picked(&view)), (vec![(1, 100, true), (2, 100, true)], vec![1, 2]));
        publish(&other, &weight(FIRST, "0")).await;
        assert_eq!(next(&mut changes).await, "updated 1");
        assert_eq!(shown(&view), [(1, 0, true), (2, 100, true)]);
        assert_eq!(picked(&view), [2], "a weight of 0 gets no work");
        publish(&other, &weight("0.0.0.0", "0")).await;
        assert_eq!(next(&mut changes).await, "updated 2");
        assert_eq!(shown(&view), [(1, 0, true), (2, 0, true)]);
        publish(&other, &weight(FIRST, "30")).await;
        assert_eq!(next(&mut changes).await, "updated 1");
        withdraw(&other, &weight(FIRST, "0")).await;
        assert_eq!(shown(&view), [(1, 30, true), (2, 0, true)]);
        assert_eq!(picked(&view), [1], "a host precedes any host");
        publish(&other, &disabled("0.0.0.0")).await;
        let mut removed = [next(&mut changes).await, next(&mut changes).await];
        removed.sort();
        assert_eq!(removed, ["removed 1", "removed 2"]);
        assert!(view.pick().is_err());
        publish(&other, &rule("empty://0.0.0.0/com.shop.Orders?category=configurators")).await;
        until_shown(&view, [(100, true), (100, true)]).await;
        assert_eq!(rejected(&view), [""; 0]);
    }

    async fn a_rule_that_sets_what_is_missing_replaces_no_value(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let own = Instance::new(NAME, "10.0.0.7", 1).id("1").weight(7);
        let _one = soon(registry(&client).register(own)).await.unwrap();
        let _two = soon(registry(&client).register(Instance::new(NAME, "10.0.0.7", 2).id("2"))).await.unwrap();
        let view = view(&client).await;
        publish(&client, &rule("absent://0.0.0.0/com.shop.Orders?weight=50")).await;
        until_shown(&view, [(7, true), (50, true)]).await;
        publish(&client, &weight(FIRST, "9")).await;
        until_shown(&view, [(9, true), (50, true)]).await;
    }

    async fn rules_apply_in_a_folder_that_is_created_later(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        // Another program registers providers without any other folder.
        let name = "dubbo%3A%2F%2F10.0.0.7%3A1%2Fcom.shop.Orders%3Fapplication%3Done";
        publish(&client, &format!("/dubbo/{NAME}/providers/{name}")).await;
        publish(&client, &format!("/dubbo/{NAME}/providers/{}", name.replace("%3A1%2F", "%3A2%2F"))).await;
        let view = view(&client).await;
        assert_eq!(shown(&view), [(1, 100, true), (2, 100, true)]);
        publish(&client, &disabled(FIRST)).await;
        until_shown(&view, [(100, false), (100, true)]).await;
        let document = "{scope: service, key: com.shop.Orders, configs: [{side: provider, parameters: {weight: 5}}]}";
        soon(client.create(&format!("{CONFIG}/{NAME}::.configurators"), document, CreateMode::Persistent)).await.unwrap();
        until_shown(&view, [(5, false), (5, true)]).await;
        soon(client.delete_all(CONFIG)).await.unwrap();
        until_shown(&view, [(100, false), (100, true)]).await;
        soon(client.delete_all(FOLDER)).await.unwrap();
        until_shown(&view, [(100, true), (100, true)]).await;
        publish(&client, &disabled(FIRST)).await;
        until_shown(&view, [(100, false), (100, true)]).await;
    }

    async fn documents_of_the_service_and_of_applications_apply(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _providers = providers(&client).await;
        let view = view(&client).await;
        let path = |stem: &str| format!("{CONFIG}/{stem}.configurators");
        let write = async |stem: &str, text: &str| {
            soon(other.create_or_set(&path(stem), text.to_owned(), CreateMode::Persistent)).await.unwrap();
        };
        let admins = |key: &str, scope: &str, parameters: &str| format!(
            "configVersion: v2.7\nscope: {scope}\nkey: {key}\nenabled: true\nruntime: true\nconfigs:\n- addresses: [0.0.0.0]\n  side: provider\n  type: weight\n  enabled: true\n  parameters:\n    {parameters}\n"
        );
        write("one", &admins("one", "application", "weight: 10")).await;
        until_shown(&view, [(10, true), (100, true)]).await;
        write("two", &admins("two", "application", "disabled: true")).await;
        until_shown(&view, [(10, true), (100, false)]).await;
        let service = "com.shop.Orders::";
        write(service, &admins(NAME, "service", "weight: 20")).await;
        until_shown(&view, [(20, true), (20, false)]).await;
        // A rule that is turned off, and the rules of other services, applications and versions.
        write(service, &admins(NAME, "service", "weight: 30").replace("  enabled: true", "  enabled: false")).await;
        until_shown(&view, [(10, true), (100, false)]).await;
        for (stem, key) in [("com.shop.Other::", "com.shop.Other"), ("com.shop.Orders:2.0:", "com.shop.Orders:2.0")] {
            write(stem, &admins(key, "service", "weight: 40")).await;
        }
        write("three", &admins("three", "application", "weight: 50")).await;
        withdraw(&other, &path("two")).await;
        until_shown(&view, [(10, true), (100, true)]).await;
        // A provider of an application that appears later.
        let payload = BTreeMap::from([("application", "three")]);
        let third = Instance::new(NAME, "10.0.0.7", 3).id("3").payload(payload);
        let _third = soon(registry(&client).register(third)).await.unwrap();
        until(async || shown(&view) == [(1, 10, true), (2, 100, true), (3, 50, true)]).await;
        assert_eq!(rejected(&view), [""; 0]);
    }

    async fn an_invalid_rule_is_listed_and_affects_nothing_else(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _providers = providers(&client).await;
        let document = format!("{CONFIG}/one.configurators");
        let valid = "{scope: application, key: one, configs: [{side: provider, parameters: {weight: 10}}]}";
        soon(other.create(&document, valid, CreateMode::Persistent)).await.unwrap();
        publish(&other, &weight("0.0.0.0", "heavy")).await;
        publish(&other, &weight("10.0.0.7:2", "20")).await;
        publish(&other, &format!("{FOLDER}/%zz")).await;
        let view = view(&client).await;
        assert_eq!(shown(&view), [(1, 10, true), (2, 20, true)]);
        let listed = rejected(&view);
        assert_eq!(listed.len(), 2, "{listed:?}");
        assert!(listed[0].contains("configurators/%zz") && listed[0].contains("percent-encoded"), "{listed:?}");
        assert!(listed[1].contains("heavy") && listed[1].contains("weight must be a number"), "{listed:?}");
        // The last valid content of a document stays in use.
        for bad in ["{", "key: one\nconfigs: [{side: provider}]", "{scope: application, key: two, configs: [{side: provider, parameters: {weight: 1}}]}"] {
            soon(other.set(&document, bad, None)).await.unwrap();
            until(async || rejected(&view).iter().any(|listed| listed.contains("one.configurators"))).await;
            assert_eq!(shown(&view), [(1, 10, true), (2, 20, true)], "{bad}");
            soon(other.set(&document, valid, None)).await.unwrap();
            until(async || rejected(&view).len() == 2).await;
        }
        soon(other.set(&document, "", None)).await.unwrap();
        until_shown(&view, [(100, true), (20, true)]).await;
        withdraw(&other, &weight("0.0.0.0", "heavy")).await;
        withdraw(&other, &format!("{FOLDER}/%zz")).await;
        until(async || rejected(&view).is_empty()).await;
    }

    async fn rules_that_may_not_be_read_are_listed_and_the_last_known_stay(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let _providers = providers(&other).await;
        let hidden = Acl::new(Permissions::WRITE | Permissions::CREATE | Permissions::DELETE | Permissions::ADMIN, "world", "anyone");
        let before = view(&client).await;
        publish(&other, &disabled(FIRST)).await;
        until_shown(&before, [(100, false), (100, true)]).await;
        soon(other.set_acl(FOLDER, [hidden.clone()], None)).await.unwrap();
        publish(&other, &weight(FIRST, "5")).await;
        // Servers send no events to a client without the permission, so that it learns of this on a new link.
        proxy.cut().await;
        until(async || before.is_stale()).await;
        proxy.heal().await.unwrap();
        until(async || rejected(&before).len() == 1 && !before.is_stale()).await;
        assert_eq!(shown(&before), [(1, 100, false), (2, 100, true)]);
        // A view that never read the rules shows the providers without them.
        let after = view(&other).await;
        assert_eq!(shown(&after), [(1, 100, true), (2, 100, true)]);
        assert!(rejected(&after)[0].contains(FOLDER) && rejected(&after)[0].contains("permission denied"), "{:?}", rejected(&after));
        soon(other.set_acl(FOLDER, [Acl::open_unsafe()], None)).await.unwrap();
        until_shown(&before, [(5, false), (100, true)]).await;
        until_shown(&after, [(5, false), (100, true)]).await;
        until(async || rejected(&before).is_empty() && rejected(&after).is_empty()).await;
    }

    async fn changes_during_an_outage_apply_when_the_rules_were_read_again(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let _providers = providers(&other).await;
        publish(&other, &disabled(FIRST)).await;
        let document = format!("{CONFIG}/two.configurators");
        let text = "{scope: application, key: two, configs: [{side: provider, parameters: {weight: 10}}]}";
        soon(other.create(&document, text, CreateMode::Persistent)).await.unwrap();
        let view = view(&client).await;
        assert_eq!(shown(&view), [(1, 100, false), (2, 10, true)]);
        for expires in [false, true] {
            let session = client.session_id().unwrap();
            proxy.cut().await;
            until(async || view.is_stale()).await;
            if expires {
                server.expire(session).await.unwrap();
                publish(&other, &disabled(FIRST)).await;
                soon(other.set(&document, text, None)).await.unwrap();
            } else {
                withdraw(&other, &disabled(FIRST)).await;
                soon(other.set(&document, text.replace("10", "20"), None)).await.unwrap();
            }
            // The last known rules apply until the rules were read again.
            let known = if expires { [(1, 100, true), (2, 20, true)] } else { [(1, 100, false), (2, 10, true)] };
            assert_eq!(shown(&view), known);
            proxy.heal().await.unwrap();
            until(async || !view.is_stale()).await;
            let new = if expires { [(100, false), (10, true)] } else { [(100, true), (20, true)] };
            until_shown(&view, new).await;
        }
    }

    async fn rules_survive_a_restart_of_the_server(backend: Backend) {
        let server = backend.start_own().await;
        let client = connect(&server).await;
        let _providers = providers(&client).await;
        publish(&client, &disabled(FIRST)).await;
        let view = view(&client).await;
        server.stop().await;
        until(async || view.is_stale()).await;
        assert_eq!(picked(&view), [2]);
        server.start_again().await;
        until(async || !view.is_stale()).await;
        until_shown(&view, [(100, false), (100, true)]).await;
        withdraw(&client, &disabled(FIRST)).await;
        until_shown(&view, [(100, true), (100, true)]).await;
    }

    async fn a_disabled_provider_is_never_shown_while_a_view_opens(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let _providers = providers(&other).await;
        publish(&other, &disabled(FIRST)).await;
        let document = format!("{CONFIG}/two.configurators");
        let text = "{scope: application, key: two, configs: [{side: provider, parameters: {disabled: true}}]}";
        soon(other.create(&document, text, CreateMode::Persistent)).await.unwrap();
        for (op, part) in [
            (OpCode::GetChildren2, FOLDER),
            (OpCode::GetChildren2, CONFIG),
            (OpCode::GetData, "two.configurators"),
            (OpCode::GetData, "/providers/"),
        ] {
            let proxy = server.proxy().await;
            proxy.add(Rule::on(op).path(move |path| path.contains(part)).swallow_reply());
            let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
            let view = registry(&client).service_builder::<()>(NAME).start().unwrap();
            let mut changes = view.changes();
            loop {
                match soon(changes.next()).await.unwrap().unwrap() {
                    ServiceChange::Current if view.instances().all().len() == 2 => break,
                    ServiceChange::Added(instance) => panic!("{op:?} {part}: {instance:?}"),
                    _ => {}
                }
            }
            assert!(view.pick().is_err(), "{op:?} {part}");
        }
    }

    async fn registries_of_one_client_have_their_own_rules(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let _providers = providers(&client).await;
        let test = Registry::builder(&client, "/test").layout(RegistryLayout::Dubbo).build().unwrap();
        let _own = [1, 2].map(|port| test.announce(Instance::new(NAME, "10.0.0.7", port).id(port.to_string())).unwrap());
        let one = view(&client).await;
        let another = soon(test.service_builder(NAME).open()).await.unwrap();
        publish(&client, &disabled(FIRST)).await;
        publish(&client, &weight("0.0.0.0", "3").replace("/dubbo/", "/test/")).await;
        until_shown(&one, [(100, false), (100, true)]).await;
        until_shown(&another, [(3, true), (3, true)]).await;
        // Consumers have no rules.
        let user = Instance::new("checkout", "10.0.0.7", 1).id("c1");
        let _consumer = soon(registry(&client).consume(NAME, user)).await.unwrap();
        let consumers = soon(registry(&client).consumers(NAME)).await.unwrap();
        let consumer = consumers.pick().unwrap();
        assert_eq!((consumer.weight, consumer.enabled), (None, true));
    }

    async fn only_a_view_in_dubbos_layout_reads_rules(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let _providers = providers(&other).await;
        let base = Registry::new(&other, "/services").unwrap();
        let _instance = soon(base.register(Instance::new(NAME, "10.0.0.7", 1).id("1"))).await.unwrap();
        let paths = async |layout, path| {
            let proxy = server.proxy().await;
            let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
            let registry = Registry::builder(&client, path).layout(layout).build().unwrap();
            let _view = soon(registry.service(NAME)).await.unwrap();
            soon(client.sync("/")).await.unwrap();
            let mut paths: Vec<_> = proxy.trace().iter().filter_map(|frame| frame.path.clone()).collect();
            paths.sort();
            paths.dedup();
            paths.retain(|path| path.contains(&registry.path()[1..]));
            paths
        };
        let curators = paths(RegistryLayout::Curator, "/services").await;
        assert_eq!(curators.len(), 2, "the folder and its instance: {curators:?}");
        let dubbos = paths(RegistryLayout::Dubbo, "/dubbo").await;
        let mentions = |part: &str| dubbos.iter().any(|path| path.ends_with(part));
        assert!(mentions("/configurators") && mentions("/config/dubbo"), "{dubbos:?}");
        assert_eq!(dubbos.len(), 2 + 1 + 2, "folders and providers: {dubbos:?}");
    }
}
