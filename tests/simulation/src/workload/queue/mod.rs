//! Queues: producers, consumers, and their records.

mod consumer;
mod producer;
mod records;
mod version;
mod workload;

pub(super) use workload::QueueWorkload;
