use super::{RegistryLayout, dubbo, percent};
use crate::instance::{self, EncodedInstance, Instance};
use crate::neighbour::{self, Checks, Neighbour};
use bytes::Bytes;
use docent_core::{Error, ParentKind};
use serde::de::DeserializeOwned;

/// Side of a service that an instance is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ServiceSide {
    Provider,
    Consumer,
}

/// Location of a registry in the tree: its base, and the `RegistryLayout` of services and instances below it.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub(crate) base: String,
    pub(crate) layout: RegistryLayout,
    /// Framework for whose callers instances are written in Curator's layout.
    pub(crate) neighbour: Option<Neighbour>,
    /// Kind of node that folders are created as.
    pub(crate) parents: ParentKind,
    /// Payloads that the registrations of the registry have checked.
    pub(crate) checks: Checks,
}

impl Placement {
    /// Returns the node whose children are the instances of `service` on one side.
    pub(crate) fn folder(&self, service: &str, side: ServiceSide) -> String {
        let base = &self.base;
        match (self.layout, side) {
            (RegistryLayout::Curator, ServiceSide::Provider) => format!("{base}/{service}"),
            (RegistryLayout::Curator, ServiceSide::Consumer) => format!("{base}-consumers/{service}"),
            (RegistryLayout::Dubbo, ServiceSide::Provider) => self.of_dubbo(service, "providers"),
            (RegistryLayout::Dubbo, ServiceSide::Consumer) => self.of_dubbo(service, "consumers"),
        }
    }

    /// Returns the folder named `folder` of a service in Dubbo's layout.
    pub(crate) fn of_dubbo(&self, service: &str, folder: &str) -> String {
        format!("{}/{}/{folder}", self.base, percent::encode(service))
    }

    /// Returns the folder with the rules of `service`, and the folder of nodes that contain rules. Returns
    /// `None` in a layout without rules.
    pub(crate) fn rules(&self, service: &str) -> Option<(String, String)> {
        match self.layout {
            RegistryLayout::Curator => None,
            RegistryLayout::Dubbo => {
                Some((self.of_dubbo(service, "configurators"), format!("{}/config/dubbo", self.base)))
            }
        }
    }

    /// Returns true if a child of the base can be a service. In Dubbo's layout, some are folders of Dubbo.
    pub(crate) fn is_service(&self, node: &str) -> bool {
        self.layout != RegistryLayout::Dubbo || !["config", "mapping", "metadata"].contains(&node)
    }

    /// Returns the service that a child of the base represents.
    pub(crate) fn service(&self, node: &str) -> String {
        match self.layout {
            RegistryLayout::Curator => node.to_owned(),
            RegistryLayout::Dubbo => percent::decode(node).unwrap_or_else(|| node.to_owned()),
        }
    }

    /// Returns the path and the data that announce an instance of `service`.
    pub(crate) fn node(
        &self,
        service: &str,
        side: ServiceSide,
        instance: &EncodedInstance,
    ) -> Result<(String, Bytes), Error> {
        let folder = self.folder(service, side);
        Ok(match self.layout {
            RegistryLayout::Curator => {
                let path = format!("{folder}/{}", instance.id);
                let data = match self.neighbour {
                    Some(neighbour) => neighbour::wrapped(neighbour, instance)?.to_json(),
                    None => instance.to_json(),
                };
                (path, data.into())
            }
            RegistryLayout::Dubbo => {
                let url = dubbo::to_url(service, side, instance)?;
                (format!("{folder}/{}", percent::encode(&url)), Bytes::new())
            }
        })
    }

    /// Returns an instance as its own neighbours see it: one that is out of service for them is disabled.
    fn of_neighbour(&self, mut instance: EncodedInstance) -> EncodedInstance {
        instance.enabled &= !neighbour::is_out_of_service(instance.payload.as_deref());
        if let Some(neighbour) = self.neighbour {
            instance.payload = instance.payload.map(|payload| neighbour::unwrapped(neighbour, payload));
        }
        instance
    }

    /// Decodes the instance of the node named `name`.
    ///
    /// # Errors
    /// What is wrong with the data, without any of its values.
    pub(crate) fn read<P: DeserializeOwned + 'static>(
        &self,
        service: &str,
        name: &str,
        data: &[u8],
    ) -> Result<Instance<P>, String> {
        let mut written = match self.layout {
            RegistryLayout::Curator => self.of_neighbour(instance::decode(data)?),
            RegistryLayout::Dubbo => {
                dubbo::from_url(&percent::decode(name).ok_or("the node's name is not percent-encoded")?)?
            }
        };
        // Missing keys are taken from the path of the node.
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
