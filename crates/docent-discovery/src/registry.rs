use crate::instance::{self, Instance};
use crate::layout::{Placement, RegistryLayout, ServiceSide};
use crate::names::{self, ServiceNames};
use crate::neighbour::{Checks, Neighbour};
use crate::registration::{Announcer, Registration};
use crate::service::{Service, ServiceBuilder};
use docent_core::recipe::{InOperation, NodePath, debug_handle, if_exists};
use docent_core::{Client, Error, ParentKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Registry in which services are announced and found. Corresponds to Curator's `ServiceDiscovery`.
///
/// # Expected flow
/// Each copy of a service [registers](Self::register) an [`Instance`] and holds the [`Registration`]. A user
/// of the service opens a [view](Self::service) of it, [picks](Service::pick) an instance for each piece of
/// work and reports the outcome.
///
/// # Guarantees
/// The guarantees of [`Registration`] and of [`Service`]. The default layout is Curator's, byte for byte, so
/// that services in Java and Rust find each other.
///
/// # Assumptions
/// Ids are unique within a service. Payloads are small and change rarely: each change is sent to every client
/// that follows the service.
///
/// # Caveats
/// The answer of a registry is advice: an instance may have died since, and a disconnected client shows what
/// it knew before. If only one process may do some work, use a lock or an election.
///
/// Cheap to clone.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    client: Client,
    placement: Placement,
    drain: Duration,
}

impl Inner {
    fn announcer(&self, service: String, side: ServiceSide) -> Announcer {
        Announcer::new(&self.client, &self.placement, service, side, self.drain)
    }
}

/// Builder of a [`Registry`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RegistryBuilder {
    client: Client,
    base: String,
    layout: RegistryLayout,
    drain: Duration,
    parents: ParentKind,
    neighbour: Option<Neighbour>,
}

impl RegistryBuilder {
    /// Sets the layout of services in the tree. Default [`RegistryLayout::Curator`].
    pub fn layout(mut self, layout: RegistryLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets how long the client's [shutdown](Client::shutdown) keeps a dynamic instance disabled before it
    /// deregisters it. Choose the time that work in progress takes, or that callers need to learn of the
    /// change. Default: none, so that the instance is deregistered immediately. Has no effect in Dubbo's
    /// layout, where the node's name holds the data.
    pub fn drain(self, period: Duration) -> Self {
        Self { drain: period, ..self }
    }

    /// Writes instances so that the callers of another framework find them, and reads the payloads of that
    /// framework's instances. Default: none. Not for [`RegistryLayout::Dubbo`], and not for consumers.
    ///
    /// ```
    /// # fn example(client: &docent_core::Client) -> Result<(), docent_core::Error> {
    /// use docent_discovery::{Neighbour, Registry};
    ///
    /// let registry = Registry::builder(client, "/services").neighbour(Neighbour::SpringCloud).build()?;
    /// # let _ = registry;
    /// # Ok(()) }
    /// ```
    pub fn neighbour(self, neighbour: Neighbour) -> Self {
        Self { neighbour: Some(neighbour), ..self }
    }

    /// Sets the kind of node that the folders of the registry are created as. Default
    /// [`ParentKind::Persistent`], so that a watch of another library on the folder of a service stays
    /// valid while the service has no instances. With [`ParentKind::Container`], the servers delete the
    /// folder of a service without instances.
    pub fn parents(self, kind: ParentKind) -> Self {
        Self { parents: kind, ..self }
    }

    /// Creates the registry.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, or if a neighbour is combined with Dubbo's layout.
    pub fn build(self) -> Result<Registry, Error> {
        let Self { client, base, layout, drain, parents, neighbour } = self;
        if let (RegistryLayout::Dubbo, Some(neighbour)) = (layout, neighbour) {
            let detail = format!("neighbour {neighbour} must not be combined with Dubbo's layout");
            return Err(Error::invalid_input("registry", detail));
        }
        let base = NodePath::of_recipe(&client, "registry", base)?.into();
        let client = client.with_parents(parents);
        Ok(Registry(Arc::new(Inner {
            client,
            placement: Placement { base, layout, neighbour, parents, checks: Checks::default() },
            drain,
        })))
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
    /// Creates a registry at `path`, in Curator's layout. Nodes are created on demand.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Returns a builder for a registry with its own settings.
    pub fn builder(client: &Client, path: &str) -> RegistryBuilder {
        RegistryBuilder {
            client: client.clone(),
            base: path.to_owned(),
            layout: RegistryLayout::default(),
            drain: Duration::ZERO,
            parents: ParentKind::Persistent,
            neighbour: None,
        }
    }

    /// Returns the path as given.
    pub fn path(&self) -> &str {
        &self.0.placement.base
    }

    /// Announces `instance`, waiting until the servers have it, for at most the operation timeout. If another
    /// session has a node with the same id, such as a killed predecessor, waits until that session must have
    /// ended, up to two session timeouts, and then takes over.
    ///
    /// A static or permanent instance replaces one with the same id.
    ///
    /// # Errors
    /// `InvalidInput` if the instance breaks a rule, `TooLarge`: nothing was sent. `InvalidInput` also if its
    /// payload would make the service unreadable for typed readers in Java: an instance there has a payload
    /// of a Java class, which the error names together with the [option](Neighbour) that writes it. A
    /// registry does not repeat that check within a minute for the same kind of payload of a service.
    /// `AlreadyRegistered` if this client has an instance with this id, `NodeExists` if another session keeps
    /// one, `NoAuth`, `Timeout`, `Closed`: the instance is not announced, or is being removed.
    ///
    /// # Cancel safety
    /// This method is cancel safe for a dynamic instance: nothing is left behind. For others it is *not*
    /// cancel safe: the instance may have been registered.
    pub fn register<P: Serialize>(
        &self,
        instance: Instance<P>,
    ) -> impl Future<Output = Result<Registration, Error>> + Send + use<P> {
        let name = instance.name.clone();
        self.make("register", Ok(name), ServiceSide::Provider, instance)
    }

    /// Announces a dynamic `instance` without waiting, as soon as the servers can be reached: for a process
    /// that must start while ZooKeeper is unreachable. [`Registration::announced`] waits, and reports a
    /// payload that [`register`](Self::register) would refuse: the instance is then announced once that
    /// payload is [updated](Registration::update), or once no other instance has the class.
    ///
    /// If this client is about to remove the node of an earlier instance with the same id, that node is used
    /// again; if its deletion has already been sent, the node is re-created.
    ///
    /// # Errors
    /// `InvalidInput` if the instance breaks a rule or is not dynamic, `TooLarge`, `AlreadyRegistered` if
    /// this client has an instance with this id, `Closed`.
    pub fn announce<P: Serialize>(&self, instance: Instance<P>) -> Result<Registration, Error> {
        instance.check().in_operation("announce")?;
        if !instance.service_type.is_dynamic() {
            let detail =
                format!("instance {:?} must be dynamic to be announced without waiting", instance.id);
            return Err(Error::invalid_input("announce", detail));
        }
        let name = instance.name.clone();
        let encoded = instance::encoded(&self.0.client, instance).in_operation("announce")?;
        let announcer = self.0.announcer(name, ServiceSide::Provider);
        Registration::start(announcer, encoded).in_operation("announce")
    }

    /// Announces `instance`, which may belong to any service, as a consumer of `service`. Works like
    /// [`register`](Self::register).
    ///
    /// # Errors
    /// Same as [`register`](Self::register).
    ///
    /// # Cancel safety
    /// Same as [`register`](Self::register).
    pub fn consume<P: Serialize>(
        &self,
        service: &str,
        instance: Instance<P>,
    ) -> impl Future<Output = Result<Registration, Error>> + Send + use<P> {
        let checked = instance::check_segment("service name", service);
        self.make("consume", checked.map(|()| service.to_owned()), ServiceSide::Consumer, instance)
    }

    fn make<P: Serialize>(
        &self,
        operation: &'static str,
        service: Result<String, Error>,
        side: ServiceSide,
        instance: Instance<P>,
    ) -> impl Future<Output = Result<Registration, Error>> + Send + use<P> {
        let registry = Arc::clone(&self.0);
        // Encode here, so that the future need not be able to send the payload between threads.
        let encoded = instance.check().and_then(|()| instance::encoded(&registry.client, instance));
        async move {
            let (service, encoded) = (service.in_operation(operation)?, encoded.in_operation(operation)?);
            let announcer = registry.announcer(service, side);
            Box::pin(Registration::make(announcer, encoded)).await.in_operation(operation)
        }
    }

    /// Opens a live view of a service, waiting until its instances were read once, for at most the operation
    /// timeout. Payloads are not read, so instances with any payload are shown;
    /// [`typed_service`](Self::typed_service) reads them.
    ///
    /// # Errors
    /// Same as [`ServiceBuilder::open`].
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn service(&self, name: &str) -> impl Future<Output = Result<Service, Error>> + Send + use<> {
        self.typed_service(name)
    }

    /// Opens a live view of a service like [`service`](Self::service), and reads the payloads of its
    /// instances as `P`. An instance with another payload is [unreadable](crate::Instances::unreadable).
    ///
    /// # Errors
    /// Same as [`ServiceBuilder::open`].
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn typed_service<P>(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Service<P>, Error>> + Send + use<P>
    where
        P: DeserializeOwned + Send + Sync + 'static,
    {
        self.service_builder(name).open()
    }

    /// Returns a builder for a view with its own settings. `P` is the type of the payloads; with `()` they
    /// are not read.
    pub fn service_builder<P>(&self, name: &str) -> ServiceBuilder<P>
    where
        P: DeserializeOwned + Send + Sync + 'static,
    {
        ServiceBuilder::new(&self.0.client, &self.0.placement, name, ServiceSide::Provider)
    }

    /// Opens a live view of the consumers that [use](Self::consume) a service. Works like
    /// [`service`](Self::service): payloads are not read.
    ///
    /// # Errors
    /// Same as [`ServiceBuilder::open`].
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn consumers(&self, name: &str) -> impl Future<Output = Result<Service, Error>> + Send + use<> {
        self.typed_consumers(name)
    }

    /// Opens a live view of the consumers of a service like [`consumers`](Self::consumers), and reads their
    /// payloads as `P`.
    ///
    /// # Errors
    /// Same as [`ServiceBuilder::open`].
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn typed_consumers<P>(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Service<P>, Error>> + Send + use<P>
    where
        P: DeserializeOwned + Send + Sync + 'static,
    {
        ServiceBuilder::new(&self.0.client, &self.0.placement, name, ServiceSide::Consumer).open()
    }

    /// Returns the names of all known services in order: services that have or had an instance. A service
    /// whose [folder](RegistryBuilder::parents) is a container is removed some time after its last instance.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn names(&self) -> impl Future<Output = Result<Vec<String>, Error>> + Send + use<> {
        let registry = self.clone();
        async move { registry.list().await.in_operation("names") }
    }

    async fn list(&self) -> Result<Vec<String>, Error> {
        let children = if_exists(self.0.client.children(self.path()).await)?;
        Ok(children.map_or_else(Vec::new, |children| names::sorted(&self.0.placement, &children)))
    }

    /// Follows the [names](Self::names): the current ones first, then all of them after each change. The
    /// stream continues through lost connections and new sessions, and ends when the client is closed.
    ///
    /// # On drop
    /// The watch at the servers is removed.
    ///
    /// # Errors
    /// `InvalidInput`, which cannot occur for a registry that was built.
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
