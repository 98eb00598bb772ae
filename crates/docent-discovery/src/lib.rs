#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod balance;
#[cfg(feature = "tower")]
mod balanced;
mod instance;
#[doc(hidden)]
pub mod internals;
mod kept;
mod layout;
mod membership;
mod names;
mod neighbour;
mod registration;
mod registry;
mod rules;
mod service;
mod telemetry;
mod texts;

pub use balance::{OutlierPolicy, PickError, PickPolicy, Picked};
#[cfg(feature = "tonic")]
#[cfg_attr(docsrs, doc(cfg(feature = "tonic")))]
pub use balanced::BalancedChannel;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub use balanced::{AttemptPolicy, Balanced, CallError, Outcome, RetryBudget};
pub use instance::{Instance, ServiceType, UriPart, UriSpec};
pub use layout::RegistryLayout;
pub use membership::{
    Member, MemberChange, MemberChanges, Members, Membership, MembershipBuilder, Peer, Presence,
};
pub use names::ServiceNames;
pub use neighbour::Neighbour;
pub use registration::{Registration, RegistrationStatus};
pub use registry::{Registry, RegistryBuilder};
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub use service::Discovered;
pub use service::{Instances, Service, ServiceBuilder, ServiceChange, ServiceChanges, Unreadable};
