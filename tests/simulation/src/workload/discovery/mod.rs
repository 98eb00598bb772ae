//! Instances of a service and members of a group that join, change and leave, and views of them.

mod instance;
mod member;
mod offer;
mod view;
mod workload;

pub(super) use workload::DiscoveryWorkload;
