//! Reports on paths, and their serialized form.

mod barrier;
mod contender;
mod election;
mod kind;
mod lease;
mod left_out;
mod line;
mod membership;
mod node_text;
mod partition;
mod payload;
mod plain;
mod printable;
mod queue;
mod recipe;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod report;
mod semaphore;
mod service;
mod session;
mod time;
mod value;
mod writer;

pub use barrier::{Barrier, DoubleBarrier};
pub use contender::Contender;
pub use election::{Election, ElectionLayout};
pub use kind::Kind;
pub use lease::TimedLease;
pub use left_out::{LeftOut, Refusal};
pub use line::Line;
pub use membership::{Member, Membership};
pub use node_text::NodeText;
pub use partition::{Partition, PartitionItem};
pub use payload::Payload;
pub use plain::Plain;
pub use printable::printable;
pub use queue::{Claim, DeadLetter, Queue, QueueItem, QueueLayout};
pub use recipe::Recipe;
pub use report::Report;
pub use semaphore::Semaphore;
pub use service::{Instance, InstanceState, Registry, RegistryLayout, Service, ServiceName};
pub use time::{ServerTime, Since, TimeSource};
pub use value::{ConfigReport, Counter, EarlierValue, NumberFormat, Value};
pub use writer::Writer;
