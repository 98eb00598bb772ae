use super::Instances;
use super::follower::Followers;
use super::task::{Filter, ViewState, ViewTask};
use super::view::{Inner, Service};
use crate::balance::{Balance, OutlierPolicy, PickPolicy};
use crate::layout::{Placement, ServiceSide};
use crate::rules::{FollowedRules, RuleSources};
use crate::telemetry::ServiceGauges;
use crate::{Instance, instance};
use docent_core::recipe::{self, Hooks, InOperation};
use docent_core::{ChildrenCache, Client, Error};
use futures_util::{StreamExt, stream};
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Builder of a [`Service`].
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

    /// Shows only instances for which `filter` returns true. The filter is called once for each version of an
    /// instance, and again after a [rule](crate::RegistryLayout::Dubbo) changed it. An instance at which it
    /// panics is [unreadable](Instances::unreadable).
    ///
    /// The filter runs on a thread for blocking code, like the decoder of payloads. A slow filter delays only
    /// this view, which is [stale](Service::is_stale) after a second.
    pub fn filter(mut self, filter: impl Fn(&Instance<P>) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// Sets how long an instance is still shown after its node was deleted. Default: not at all.
    ///
    /// With a grace period, an instance that comes back in time never leaves the view, for example a healthy
    /// one whose session expired. A dead instance is picked for that much longer, so the caller must
    /// [report](crate::Picked::failed) its failures. A disabled instance leaves immediately.
    pub fn removal_grace(mut self, grace: Duration) -> Self {
        self.removal_grace = grace;
        self
    }

    /// Sets the policy by which [`Service::pick`] chooses. Default [`PickPolicy::RoundRobin`].
    pub fn policy(mut self, policy: PickPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the rule for setting failing instances aside. Default: after two failures, for 30 s.
    pub fn outlier_policy(mut self, rule: OutlierPolicy) -> Self {
        self.outlier_policy = rule;
        self
    }

    /// Starts following the service, waiting until its instances were read once, for at most the operation
    /// timeout. A service that was never registered has no instances.
    ///
    /// # Errors
    /// `InvalidInput` if the name breaks a rule, `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn open(self) -> Result<Service<P>, Error> {
        let operation = self.operation();
        let service = self.start()?;
        service.ready().await.in_operation(operation)?;
        Ok(service)
    }

    /// Starts following the service, without waiting: its instances are known once it is
    /// [ready](Service::ready). For a process that must start while ZooKeeper is unreachable.
    ///
    /// # Errors
    /// `InvalidInput` if the name breaks a rule, `Closed`.
    pub fn start(self) -> Result<Service<P>, Error> {
        let operation = self.operation();
        self.start_following().in_operation(operation)
    }

    /// Returns the method of the registry, for errors.
    fn operation(&self) -> &'static str {
        match self.side {
            ServiceSide::Provider => "service",
            ServiceSide::Consumer => "consumers",
        }
    }

    fn start_following(self) -> Result<Service<P>, Error> {
        let Self { client, placement, service, side, filter, removal_grace, policy, outlier_policy } = self;
        instance::check_segment("service name", &service)?;
        let cache = ChildrenCache::new(&client, &placement.folder(&service, side))?;
        let rules = match side {
            ServiceSide::Provider => RuleSources::start(&client, &placement, &service)?,
            ServiceSide::Consumer => None,
        };
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
            rules: rules.as_ref().map(|rules| FollowedRules::new(rules, client.label(), &service)),
            state: ViewState::default(),
        };
        let (changes, lag) = (cache.changes(), hooks.lag());
        let rule_changes = stream::iter(rules.as_ref().map(RuleSources::changes)).flatten();
        recipe::spawn(&client, task.run(changes, rule_changes, abandoned.clone(), hooks));
        Ok(Service::new(Inner {
            name: service,
            cache,
            rules,
            lag,
            shown,
            #[cfg(feature = "tower")]
            followers,
            balance: Arc::new(Balance::new(policy, outlier_policy)),
            _task: abandoned.drop_guard(),
        }))
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
