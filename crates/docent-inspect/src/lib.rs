#![doc = include_str!("../README.md")]

mod ensemble;
mod inspect;
mod live;
mod nodes;
mod recognise;
mod report;
#[cfg(test)]
mod tests;

pub use ensemble::{ServerState, Vitals};
pub use inspect::{Inspector, InspectorBuilder, Limits, Survey};
pub use live::{Live, LiveSurvey, Reports, SurveyEvent, Surveys};
pub use report::{
    Barrier, Claim, ConfigReader, ConfigReport, Contender, Counter, DeadLetter, DoubleBarrier, EarlierValue,
    Election, ElectionLayout, Ephemeral, Instance, InstanceState, Kind, LeftOut, Line, Member, Membership,
    NodeText, NumberFormat, Partition, PartitionItem, Payload, Plain, Queue, QueueItem, QueueLayout, Recipe,
    Refusal, Registry, RegistryLayout, Report, Semaphore, ServerTime, Service, ServiceName, SessionNode,
    SessionReport, Since, Stake, StakeRole, TimeSource, TimedLease, Value, Writer, printable,
};

/// Four-letter words: short questions that a server answers without a session.
///
/// Most programs need only [`Vitals::query`].
pub mod words {
    pub use crate::ensemble::{Answer, Description, Missed, exchange, exchange_any, talks_tls};
}
