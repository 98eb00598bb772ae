use super::UUID;
use super::tree::{SESSION, Tree};
use crate::{InstanceState, Kind, Recipe, RegistryLayout, Service, Writer};
use docent_discovery::internals::disabling_rule;

fn service(recipe: Recipe) -> Service {
    match recipe {
        Recipe::Service(service) => service,
        other => panic!("not a service: {other:?}"),
    }
}

fn json(name: &str, id: &str, more: &str) -> String {
    format!(
        r#"{{"name":"{name}","id":"{id}","address":"10.0.0.1","port":80,"sslPort":null,"payload":"pl","registrationTimeUTC":1234567890123,"serviceType":"DYNAMIC","uriSpec":null{more}}}"#
    )
}

#[test]
fn curators_instances_are_reported_with_their_state() {
    let tree = Tree::default()
        .ephemeral(&format!("/services/orders/{UUID}"), json("orders", UUID, ""))
        .node("/services/orders/off", json("orders", "off", r#","enabled":false,"weight":3"#))
        .node("/services/orders/torn", &json("orders", "torn", "")[..20]);
    let report = tree.report("/services/orders");
    assert_eq!(serde_json::to_value(&report.writers).unwrap(), serde_json::json!(["docent_or_curator"]));
    let service = service(report.recipe);
    assert_eq!((service.layout, service.name.as_str()), (RegistryLayout::Curator, "orders"));
    let [on, off, torn] = &service.instances[..] else { panic!("{service:?}") };
    assert_eq!(
        (on.state, on.address.as_deref(), on.port),
        (InstanceState::Enabled, Some("10.0.0.1"), Some(80))
    );
    assert_eq!((on.session, on.registered_at_ms), (Some(SESSION), Some(1_234_567_890_123)));
    assert_eq!(
        (on.service_type, on.payload.as_ref().unwrap().json.as_ref()),
        (Some("DYNAMIC"), Some(&"pl".into()))
    );
    assert_eq!((off.state, off.weight, off.session), (InstanceState::Disabled, Some(3), None));
    assert_eq!((torn.state, torn.id.as_deref()), (InstanceState::Unreadable, None));
    assert!(torn.fault.as_ref().unwrap().contains("not JSON"));
}

#[test]
fn a_registry_lists_its_services() {
    let tree = Tree::default()
        .ephemeral("/services/orders/1", json("orders", "1", ""))
        .ephemeral("/services/orders/2", json("orders", "2", ""))
        .ephemeral("/services/users/1", json("users", "1", ""));
    let Recipe::Registry(registry) = tree.report("/services").recipe else {
        panic!("the recipe must be a registry")
    };
    let services: Vec<_> = registry.services.iter().map(|it| (it.name.as_str(), it.instances)).collect();
    assert_eq!(services, [("orders", Some(2)), ("users", Some(1))]);
    // The parent of a registry is not a registry.
    assert_eq!(tree.node("/app/services", "").report("/app").kind(), Kind::Plain);
}

#[test]
fn dubbos_layout_is_read_from_names() {
    let url = "dubbo%3A%2F%2F10.0.0.7%3A20880%2Fcom.shop.Orders%3Fweight%3D3%26enabled%3Dfalse";
    let tree = Tree::default()
        .ephemeral(&format!("/dubbo/com.shop.Orders/providers/{url}"), "")
        .node("/dubbo/com.shop.Orders/consumers", "");
    let service = service(tree.report("/dubbo/com.shop.Orders").recipe);
    assert_eq!((service.layout, service.name.as_str()), (RegistryLayout::Dubbo, "com.shop.Orders"));
    let instance = &service.instances[0];
    assert_eq!(
        (instance.address.as_deref(), instance.port, instance.weight),
        (Some("10.0.0.7"), Some(20880), Some(3))
    );
    assert_eq!(instance.state, InstanceState::Disabled);
    assert_eq!(instance.payload.as_ref().unwrap().json.as_ref().unwrap()["protocol"], "dubbo");
    let report = tree.report("/dubbo");
    assert_eq!((report.kind(), &report.writers[..]), (Kind::Registry, &[Writer::Dubbo][..]));
}

#[test]
fn dubbos_rules_for_a_service_change_its_instances() {
    let url = |port: u16| format!("dubbo%3A%2F%2F10.0.0.7%3A{port}%2Fcom.shop.Orders%3Fzone%3Da");
    let rule = disabling_rule("com.shop.Orders", &url(1)).unwrap();
    let folder = "/dubbo/com.shop.Orders";
    let tree = Tree::default()
        .ephemeral(&format!("{folder}/providers/{}", url(1)), "")
        .ephemeral(&format!("{folder}/providers/{}", url(2)), "")
        .node(&format!("{folder}/configurators/{rule}"), "")
        .node(&format!("{folder}/configurators/broken"), "");
    let service = service(tree.report(folder).recipe);
    let states: Vec<_> = service.instances.iter().map(|one| (one.port, one.state)).collect();
    assert_eq!(states, [(Some(1), InstanceState::Disabled), (Some(2), InstanceState::Enabled)]);
    assert_eq!(
        (&service.rules[..], service.instances[0].weight),
        (&["broken".to_owned(), rule.clone()][..], None)
    );
    assert_eq!(service.disabling_rule(&service.instances[0]), Some(rule));
    assert_eq!(service.instances[0].zone(), Some("a"));
}

#[test]
fn json_that_names_another_service_or_node_is_no_instance() {
    for (name, id) in [("orders", "other"), ("users", "1"), ("", "1"), ("orders", "")] {
        let tree = Tree::default().node("/services/orders/1", json(name, id, ""));
        assert_eq!(tree.report("/services/orders").kind(), Kind::Plain, "{name:?} {id:?}");
    }
}
