use super::Instances;
use super::follower::Followers;
use super::task::{Filter, ViewState, ViewTask};
use super::view::{FollowedService, Service};
use crate::balance::{OutlierPolicy, PickPolicy};
use crate::layout::{Placement, ServiceSide};
use crate::telemetry::ServiceGauges;
use crate::{Instance, instance};
use docent_core::recipe::{self, Hooks};
use docent_core::{ChildrenCache, Client, Error};
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Settings of a [`Service`].
#[must_use = "a builder does nothing until `open` or `start` is called"]
pub struct ServiceBuilder<P> {
    client: Client,
    placement: Placement,
    service: String,
    side: ServiceSide,
    filter: Option<Filter<P>>,
    removal_grace: Duration,
    policy: PickPolicy,
    outlier_policy: OutlierPolicy,
}

impl<P: DeserializeOwned + Send + Sync + 'static> ServiceBuilder<P> {
    pub(crate) fn new(client: &Client, placement: &Placement, service: &str, side: ServiceSide) -> Self {
        Self {
            client: client.clone(),
            placement: placement.clone(),
            service: service.to_owned(),
            side,
            filter: None,
            removal_grace: Duration::ZERO,
            policy: PickPolicy::default(),
            outlier_policy: OutlierPolicy::default(),
        }
    }

    /// Shows only instances for which `filter` is true. It is called once for each version of an instance, by
    /// which its answer stands. An instance at which it panics is [unreadable](Instances::unreadable).
    ///
    /// It runs on a thread for blocking code, as the decoder of payloads does: what takes long holds up this
    /// view alone, which is [stale](Service::is_stale) after a second.
    pub fn filter(mut self, filter: impl Fn(&Instance<P>) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// How long an instance whose node is gone is shown for. Default none.
    ///
    /// With it an instance that comes back in time, as after the servers expired its session although it was
    /// well, never leaves. One that died is picked for that much longer, so that the caller needs to
    /// [say](crate::Picked::failed) that it fails. One that was disabled leaves at once.
    pub fn removal_grace(mut self, grace: Duration) -> Self {
        self.removal_grace = grace;
        self
    }

    /// Policy by which [`Service::pick`] chooses. Default [`PickPolicy::RoundRobin`].
    pub fn policy(mut self, policy: PickPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Rule by which an instance that fails is set aside. Default: after two failures, for 30 s.
    pub fn outlier_policy(mut self, rule: OutlierPolicy) -> Self {
        self.outlier_policy = rule;
        self
    }

    /// Begins to follow the service, and waits until its instances were read once, at most for the operation
    /// timeout. A service that nobody has registered has no instances.
    ///
    /// # Errors
    /// `InvalidInput` when the name breaks a rule, `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn open(self) -> Result<Service<P>, Error> {
        let service = self.start()?;
        service.ready().await?;
        Ok(service)
    }

    /// Begins to follow the service, without waiting: its instances are known once it is
    /// [ready](Service::ready). For a process that has to start while ZooKeeper is away.
    ///
    /// # Errors
    /// `InvalidInput` when the name breaks a rule, `Closed`.
    pub fn start(self) -> Result<Service<P>, Error> {
        let Self { client, placement, service, side, filter, removal_grace, policy, outlier_policy } = self;
        instance::check_segment("service name", &service)?;
        let cache = ChildrenCache::new(&client, &placement.folder(&service, side))?;
        let hooks = Hooks::new(&client, cache.path());
        let (show, shown) = watch::channel(Arc::new(Instances::none()));
        let followers = Followers::new();
        let abandoned = CancellationToken::new();
        let task = ViewTask {
            placement,
            service: service.clone(),
            client: client.label().to_owned(),
            gauges: ServiceGauges::new(&client, &service),
            filter,
            removal_grace,
            shown: show,
            followers: followers.clone(),
            state: ViewState::default(),
        };
        let followed = FollowedService {
            name: service,
            cache,
            lag: hooks.lag(),
            shown,
            #[cfg(feature = "tower")]
            followers,
        };
        recipe::spawn(&client, task.run(followed.cache.changes(), abandoned.clone(), hooks));
        Ok(Service::new(followed, policy, outlier_policy, abandoned.drop_guard()))
    }
}

impl<P> Clone for ServiceBuilder<P> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            placement: self.placement.clone(),
            service: self.service.clone(),
            side: self.side,
            filter: self.filter.clone(),
            removal_grace: self.removal_grace,
            policy: self.policy,
            outlier_policy: self.outlier_policy,
        }
    }
}

impl<P> fmt::Debug for ServiceBuilder<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceBuilder")
            .field("service", &self.service)
            .field("removal_grace", &self.removal_grace)
            .field("policy", &self.policy)
            .field("outlier_policy", &self.outlier_policy)
            .finish_non_exhaustive()
    }
}
