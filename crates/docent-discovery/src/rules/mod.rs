//! Rules by which an operator changes the weight of instances and disables them: Dubbo's configurators.
//!
//! A rule changes instances as a view shows them, and leaves their nodes unchanged. The facts follow
//! `AbstractConfigurator`, `ConfigParser` and `RegistryDirectory` of Dubbo 3.3.

mod condition;
mod document;
mod followed;
mod provider;
mod rule;
mod rule_set;
mod service_key;
mod sources;

use condition::Condition;
pub(crate) use followed::FollowedRules;
use provider::Provider;
use rule::{Origin, Rule};
pub use rule_set::disabling;
pub(crate) use rule_set::{DEFAULT_WEIGHT, RuleSet};
use service_key::ServiceKey;
pub(crate) use sources::RuleSources;
