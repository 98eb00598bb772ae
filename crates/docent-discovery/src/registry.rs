use crate::instance::{self, Instance};
use crate::layout::{Placement, RegistryLayout, ServiceSide};
use crate::names::{self, ServiceNames};
use crate::registration::Registration;
use crate::service::{Service, ServiceBuilder};
use docent_core::recipe::{NodePath, debug_handle};
use docent_core::{Client, Error, ErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Registry in which services are announced and found, for users of Curator: `ServiceDiscovery`.
///
/// # Expected flow
/// Each copy of a service [registers](Self::register) an [`Instance`] and holds the [`Registration`]. A user
/// of the service opens a [view](Self::service) of it, [picks](Service::pick) an instance for each piece of
/// work and says how it went.
///
/// # Guarantees
/// The guarantees of [`Registration`] and of [`Service`]. The layout is Curator's by default, byte for byte,
/// so that services in Java are found and find.
///
/// # Assumptions
/// Ids are unique within a service. Payloads are small and change seldom: each change is sent to everybody
/// who looks.
///
/// # Caveats
/// A registry's answer is advice: an instance may have died since, and a client that is cut off shows what it
/// knew. Work that must be done by one alone belongs under a lock or an election.
///
/// Cheap to clone.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    client: Client,
    placement: Placement,
    drain: Duration,
}

/// Settings of a [`Registry`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RegistryBuilder {
    client: Client,
    base: String,
    layout: RegistryLayout,
    drain: Duration,
}

impl RegistryBuilder {
    /// Layout of services in the tree. Default [`RegistryLayout::Curator`].
    pub fn layout(mut self, layout: RegistryLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets for how long the client's [shutdown](Client::shutdown) lets a dynamic instance stand disabled
    /// before it deregisters it: as long as the work takes that is under way with it, or as callers take to
    /// hear of it. None by default: then it is deregistered at once. Without effect in Dubbo's layout, where
    /// the data is the node's name.
    pub fn drain(self, period: Duration) -> Self {
        Self { drain: period, ..self }
    }

    /// The registry.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule.
    pub fn build(self) -> Result<Registry, Error> {
        let Self { client, base, layout, drain } = self;
        let base = NodePath::new("registry", base)?.into();
        Ok(Registry(Arc::new(Inner { client, placement: Placement { base, layout }, drain })))
    }
}

impl fmt::Debug for RegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryBuilder")
            .field("base", &self.base)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// The registry at `path`, in Curator's layout. Nodes are made on demand.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Prepares a registry with settings of its own.
    pub fn builder(client: &Client, path: &str) -> RegistryBuilder {
        RegistryBuilder {
            client: client.clone(),
            base: path.to_owned(),
            layout: RegistryLayout::default(),
            drain: Duration::ZERO,
        }
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.0.placement.base
    }

    /// Announces `instance`, and waits until the servers have it, at most for the operation timeout. When
    /// another session has a node with the same id, such as a predecessor that was killed, the node is waited
    /// for until that session must have ended, up to two session timeouts, and then taken over.
    ///
    /// A static or permanent instance takes the place of one with the same id.
    ///
    /// # Errors
    /// `InvalidInput` when something about the instance breaks a rule, `TooLarge`: nothing was sent.
    /// `AlreadyRegistered` when this client has an instance with this id, `NodeExists` when another session
    /// keeps one, `NoAuth`, `Timeout`, `Closed`: nothing is announced, or it is being removed.
    ///
    /// # Cancel safety
    /// This method is cancel safe for a dynamic instance: nothing is left of it. For others it is *not*
    /// cancel safe: it may have been registered.
    pub fn register<P: Serialize>(
        &self,
        instance: Instance<P>,
    ) -> impl Future<Output = Result<Registration, Error>> + Send + use<P> {
        let name = instance.name.clone();
        self.make(Ok(name), ServiceSide::Provider, instance)
    }

    /// Announces a dynamic `instance` without waiting, as soon as the servers can be reached: for a process
    /// that has to start while ZooKeeper is away. [`Registration::announced`] waits.
    ///
    /// # Errors
    /// `InvalidInput` when something about the instance breaks a rule, or when it is not dynamic.
    /// `AlreadyRegistered` when this client has an instance with this id. The node of an instance that this
    /// client is about to remove stays, for this one, unless its deletion is already on its way; then it is
    /// made anew. `Closed`.
    pub fn announce<P: Serialize>(&self, instance: Instance<P>) -> Result<Registration, Error> {
        let Inner { client, placement, drain } = &*self.0;
        instance.check()?;
        if !instance.service_type.is_dynamic() {
            let detail =
                format!("instance {:?} must be dynamic to be announced without waiting", instance.id);
            return Err(Error::invalid_input("announce", detail));
        }
        let name = instance.name.clone();
        Registration::start(
            client,
            placement,
            &name,
            ServiceSide::Provider,
            instance::encoded(client, instance)?,
            *drain,
        )
    }

    /// Announces `instance`, of any service, as a consumer of `service`. As [`register`](Self::register).
    ///
    /// # Errors
    /// As [`register`](Self::register).
    ///
    /// # Cancel safety
    /// As [`register`](Self::register).
    pub fn consume<P: Serialize>(
        &self,
        service: &str,
        instance: Instance<P>,
    ) -> impl Future<Output = Result<Registration, Error>> + Send + use<P> {
        let checked = instance::check_segment("service name", service);
        self.make(checked.map(|()| service.to_owned()), ServiceSide::Consumer, instance)
    }

    fn make<P: Serialize>(
        &self,
        service: Result<String, Error>,
        side: ServiceSide,
        instance: Instance<P>,
    ) -> impl Future<Output = Result<Registration, Error>> + Send + use<P> {
        let registry = Arc::clone(&self.0);
        // Here, so that the future does not need to send the payload.
        let encoded = instance.check().and_then(|()| instance::encoded(&registry.client, instance));
        async move {
            let (service, Inner { client, placement, drain }) = (service?, &*registry);
            Box::pin(Registration::make(client, placement, &service, side, encoded?, *drain)).await
        }
    }

    /// Opens a live view of a service, and waits until its instances were read once, at most for the
    /// operation timeout. `P` is the type of their payloads; with `()` these are not looked at.
    ///
    /// # Errors
    /// As [`ServiceBuilder::open`].
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn service<P>(&self, name: &str) -> impl Future<Output = Result<Service<P>, Error>> + Send + use<P>
    where
        P: DeserializeOwned + Send + Sync + 'static,
    {
        self.service_builder(name).open()
    }

    /// Prepares a view with settings of its own.
    pub fn service_builder<P>(&self, name: &str) -> ServiceBuilder<P>
    where
        P: DeserializeOwned + Send + Sync + 'static,
    {
        ServiceBuilder::new(&self.0.client, &self.0.placement, name, ServiceSide::Provider)
    }

    /// Opens a live view of the consumers that [use](Self::consume) a service. As [`service`](Self::service).
    ///
    /// # Errors
    /// As [`ServiceBuilder::open`].
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn consumers<P>(&self, name: &str) -> impl Future<Output = Result<Service<P>, Error>> + Send + use<P>
    where
        P: DeserializeOwned + Send + Sync + 'static,
    {
        ServiceBuilder::new(&self.0.client, &self.0.placement, name, ServiceSide::Consumer).open()
    }

    /// The names of all services that are known, in their order: services that have or had an instance. Nodes
    /// of services without one are deleted by the servers after a while.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn names(&self) -> impl Future<Output = Result<Vec<String>, Error>> + Send + use<> {
        let registry = self.clone();
        async move { registry.list().await }
    }

    async fn list(&self) -> Result<Vec<String>, Error> {
        match self.0.client.children(self.path()).await {
            Ok(children) => Ok(names::sorted(&self.0.placement, &children)),
            Err(error) if error.kind() == ErrorKind::NoNode => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Follows the [names](Self::names): the present ones first, then all of them after each change. It
    /// survives lost links and sessions, and ends when the client is closed.
    ///
    /// # On drop
    /// The watch at the servers is removed.
    ///
    /// # Errors
    /// `InvalidInput`, which it cannot be once the registry was built.
    pub fn watch_names(&self) -> Result<ServiceNames, Error> {
        ServiceNames::new(&self.0.client, &self.0.placement)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Registry", self.path(), &self.0.client)
            .field("layout", &self.0.placement.layout)
            .finish_non_exhaustive()
    }
}
