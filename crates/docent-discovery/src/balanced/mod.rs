//! Requests sent to instances chosen by [`Service::pick`](crate::Service::pick), whose outcomes are reported
//! to the view.

mod attempt_policy;
mod call;
#[cfg(feature = "tonic")]
mod channel;
mod error;
#[cfg(feature = "tonic")]
mod grpc;
mod link;
mod links;
mod outcome;
#[cfg(feature = "tonic")]
mod replay;
mod retry_budget;
mod sender;

pub use attempt_policy::AttemptPolicy;
#[cfg(feature = "tonic")]
pub use channel::BalancedChannel;
pub use error::CallError;
pub use outcome::Outcome;
pub use retry_budget::RetryBudget;
pub use sender::Balanced;
