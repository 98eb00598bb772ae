//! Places of instances in the tree, and the data of their nodes.

mod dubbo;
mod encoded;

use crate::instance::{self, Instance, Written};
use bytes::Bytes;
use docent_core::Error;
use serde::de::DeserializeOwned;

/// Layout of services and their instances in the tree. Clients find each other only in the same layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum RegistryLayout {
    /// As Curator's `ServiceDiscovery`: providers are nodes `base/name/id` that hold JSON. Consumers, which
    /// Curator does not know, are written alike below `base-consumers`.
    #[default]
    Curator,
    /// As Dubbo's ZooKeeper registry: nodes `base/name/providers/url` and `base/name/consumers/url` without
    /// data, where the URL is percent-encoded and its parameters are the fields of the payload.
    ///
    /// The URL is `scheme://address:port/name?parameters`; the scheme is the parameter `protocol` of the
    /// payload, or `dubbo`, and `consumer` for consumers. Parameters are text: a payload is an object of
    /// texts, numbers and booleans, and reads them back as texts, as a map or a struct of `String`. `id`,
    /// `weight`, `enabled` and `timestamp` stand for the fields of the instance. As the name of the node is
    /// all there is, an [update](crate::Registration::update) makes another node before it removes the old
    /// one. For the same reason two instances with the same id are two nodes, and none waits for the other.
    Dubbo,
}

/// Side of a service that an instance is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Provider,
    Consumer,
}

/// A layout at its place.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) base: String,
    pub(crate) layout: RegistryLayout,
}

impl Tree {
    /// The node whose children are the instances of `service` on one side.
    pub(crate) fn folder(&self, service: &str, side: Side) -> String {
        let base = &self.base;
        match (self.layout, side) {
            (RegistryLayout::Curator, Side::Provider) => format!("{base}/{service}"),
            (RegistryLayout::Curator, Side::Consumer) => format!("{base}-consumers/{service}"),
            (RegistryLayout::Dubbo, Side::Provider) => {
                format!("{base}/{}/providers", encoded::encode(service))
            }
            (RegistryLayout::Dubbo, Side::Consumer) => {
                format!("{base}/{}/consumers", encoded::encode(service))
            }
        }
    }

    /// The service that a child of the base is about.
    pub(crate) fn service(&self, node: &str) -> String {
        match self.layout {
            RegistryLayout::Curator => node.to_owned(),
            RegistryLayout::Dubbo => encoded::decode(node).unwrap_or_else(|| node.to_owned()),
        }
    }

    /// The path and the data by which an instance is announced for `service`.
    pub(crate) fn node(
        &self,
        service: &str,
        side: Side,
        instance: &Written,
    ) -> Result<(String, Bytes), Error> {
        let folder = self.folder(service, side);
        Ok(match self.layout {
            RegistryLayout::Curator => (format!("{folder}/{}", instance.id), instance.to_json().into()),
            RegistryLayout::Dubbo => {
                let url = dubbo::to_url(service, side, instance)?;
                (format!("{folder}/{}", encoded::encode(&url)), Bytes::new())
            }
        })
    }

    /// Reads the instance of the node called `name`.
    ///
    /// # Errors
    /// The fault of the data, without any of its values.
    pub(crate) fn read<P: DeserializeOwned + 'static>(
        &self,
        service: &str,
        name: &str,
        data: &[u8],
    ) -> Result<Instance<P>, String> {
        let mut written = match self.layout {
            RegistryLayout::Curator => instance::decode(data)?,
            RegistryLayout::Dubbo => {
                dubbo::from_url(&encoded::decode(name).ok_or("its name is not percent-encoded")?)?
            }
        };
        // Keys that are missing: the node's place says the same.
        if written.name.is_empty() {
            service.clone_into(&mut written.name);
        }
        if written.id.is_empty() {
            name.clone_into(&mut written.id);
        }
        let payload = instance::read_payload(written.payload.as_deref())?;
        Ok(written.with_payload(payload))
    }
}
