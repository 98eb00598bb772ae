use super::found::Found;
use crate::nodes::{Data, Place};
use crate::report::{
    Instance, InstanceState, Payload, Recipe, Registry, RegistryLayout, Service, ServiceName, Writer,
};
use docent_discovery::internals::{self, FolderRules};
use serde_json::value::RawValue;

/// Folder of a service's instances in Dubbo's layout.
const PROVIDERS: &str = "providers";

/// Folder of a service's rules in Dubbo's layout.
const RULES: &str = "configurators";

/// Folders that a service has in Dubbo's layout.
const SIDES: [&str; 4] = [PROVIDERS, "consumers", RULES, "routers"];

/// Recognises a service in Curator's layout: the sample holds JSON that names the service and the node.
pub(super) fn curator(place: &Place<'_>) -> Option<Found> {
    // Request all, so that they are read in one round.
    let sample: Vec<_> = place.sample().map(|name| (name, place.data(name))).collect();
    let is_instance =
        |(name, data): &(&str, Option<&Data>)| data.is_some_and(|data| is_named(data, place.name(), name));
    if !sample.iter().any(is_instance) {
        return None;
    }
    let name = place.name();
    let instances = instances(place, RegistryLayout::Curator, name, None);
    let service =
        Service { layout: RegistryLayout::Curator, name: name.to_owned(), instances, rules: Vec::new() };
    Some(Found::new(Recipe::Service(service)).by([Writer::DocentOrCurator]))
}

/// Returns true for the data of an instance of `service` in a node of this name.
fn is_named(data: &Data, service: &str, node: &str) -> bool {
    let bytes = data.bytes.as_ref().filter(|bytes| bytes.starts_with(b"{"));
    let read = bytes.map(|bytes| internals::instance::<()>(layout(RegistryLayout::Curator), "", "", bytes));
    matches!(read, Some(Ok(instance)) if instance.name == service && !instance.id.is_empty()
        && node.starts_with(&instance.id))
}

/// Recognises a service in Dubbo's layout.
pub(super) fn dubbo(place: &Place<'_>) -> Option<Found> {
    if !place.has(PROVIDERS) || !place.has_only(&SIDES) {
        return None;
    }
    let path = place.child(PROVIDERS);
    let folder = place.view.folder(&path);
    let name = internals::service(layout(RegistryLayout::Dubbo), place.name());
    let rules = place.names_below(RULES);
    let overrides = (!rules.is_empty()).then(|| FolderRules::read(rules.iter().map(String::as_str)));
    let instances = folder.map(|folder| {
        let providers = Place::new(place.view, &path, folder);
        instances(&providers, RegistryLayout::Dubbo, &name, overrides.as_ref())
    });
    // Folders of these names may hold anything.
    if let Some(instances) = &instances
        && !instances.iter().any(|instance| instance.state != InstanceState::Unreadable)
        && !(instances.is_empty() && place.names.len() > 1)
    {
        return None;
    }
    let instances = instances.unwrap_or_default();
    let service = Service { layout: RegistryLayout::Dubbo, name, instances, rules: rules.to_vec() };
    Some(Found::new(Recipe::Service(service)).by([Writer::Dubbo]))
}

/// Recognises a folder of services, if the sample contains nothing except services and empty folders.
pub(super) fn registry(place: &Place<'_>) -> Option<Found> {
    let sample: Vec<_> = place.sample().map(|name| layout_of(place, name)).collect();
    let mut layouts = sample.into_iter().flatten();
    let layout_found = layouts.next()??;
    if !layouts.all(|layout| layout == Some(layout_found)) {
        return None;
    }
    let writer = match layout_found {
        RegistryLayout::Curator => Writer::DocentOrCurator,
        RegistryLayout::Dubbo => Writer::Dubbo,
    };
    let services = place.names.iter().map(|name| service_name(place, layout_found, name)).collect();
    Some(Found::new(Recipe::Registry(Registry { layout: layout_found, services })).by([writer]))
}

/// Returns the layout of the service at a child: `None` if the child is inconclusive, such as a service
/// without instances, and `Some(None)` if it is not a service.
fn layout_of(place: &Place<'_>, name: &str) -> Option<Option<RegistryLayout>> {
    let path = place.child(name);
    let child = Place::new(place.view, &path, place.view.folder(&path)?);
    if child.has(PROVIDERS) && child.has_only(&SIDES) {
        return Some(Some(RegistryLayout::Dubbo));
    }
    match child.names.first() {
        Some(first) => Some(is_named(child.data(first)?, name, first).then_some(RegistryLayout::Curator)),
        None if child.stat.data_length == 0 && child.stat.owner.is_none() => None,
        None => Some(None),
    }
}

fn service_name(place: &Place<'_>, registry: RegistryLayout, name: &str) -> ServiceName {
    let folder = match registry {
        RegistryLayout::Curator => place.folder(name),
        RegistryLayout::Dubbo => place.view.folder(&format!("{}/{PROVIDERS}", place.child(name))),
    };
    let instances = folder.map(|folder| folder.names.len());
    ServiceName { node: name.to_owned(), name: internals::service(layout(registry), name), instances }
}

fn layout(layout: RegistryLayout) -> docent_discovery::RegistryLayout {
    match layout {
        RegistryLayout::Curator => docent_discovery::RegistryLayout::Curator,
        RegistryLayout::Dubbo => docent_discovery::RegistryLayout::Dubbo,
    }
}

/// Returns the instances below a node, except those that were deleted meanwhile.
fn instances(
    place: &Place<'_>,
    registry: RegistryLayout,
    service: &str,
    rules: Option<&FolderRules>,
) -> Vec<Instance> {
    let read = |node: &String| instance(place, registry, service, (node, place.data(node)), rules);
    let instances = place.names.iter().map(read);
    instances.filter(|instance| !place.was_deleted(&instance.node)).collect()
}

fn instance(
    place: &Place<'_>,
    registry: RegistryLayout,
    service: &str,
    (node, data): (&str, Option<&Data>),
    rules: Option<&FolderRules>,
) -> Instance {
    let bytes = data.and_then(|data| data.bytes.as_deref());
    // In Dubbo's layout, the name of the node holds all data.
    let bytes = if registry == RegistryLayout::Dubbo { Some(bytes.unwrap_or_default()) } else { bytes };
    let read = bytes.ok_or_else(|| "the node was not read".to_owned());
    let read = read.and_then(|bytes| internals::instance(layout(registry), service, node, bytes));
    let stat = data.map(|data| &data.stat);
    let unread = Instance {
        node: node.to_owned(),
        state: InstanceState::Unreadable,
        id: None,
        address: None,
        port: None,
        ssl_port: None,
        weight: None,
        service_type: None,
        registered_at_ms: None,
        since: stat.map(|stat| place.view.since(stat.created)),
        session: stat.and_then(|stat| stat.owner),
        payload: None,
        fault: None,
    };
    match read {
        Ok(mut instance) => {
            if let Some(rules) = rules {
                rules.apply(service, node, &mut instance);
            }
            of(instance, unread)
        }
        Err(fault) => Instance { fault: Some(fault), ..unread },
    }
}

fn of(read: docent_discovery::Instance<Box<RawValue>>, node: Instance) -> Instance {
    Instance {
        state: if read.enabled { InstanceState::Enabled } else { InstanceState::Disabled },
        id: Some(read.id),
        address: read.address,
        port: read.port,
        ssl_port: read.ssl_port,
        weight: read.weight,
        service_type: Some(read.service_type.name()),
        registered_at_ms: Some(read.registered_at_ms),
        payload: read.payload.map(|payload| Payload::new(payload.get())),
        ..node
    }
}
