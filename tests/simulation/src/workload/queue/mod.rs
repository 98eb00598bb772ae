//! Queues: producers, consumers, and their records.

mod consumer;
mod producer;
mod records;
mod workload;

pub(super) use workload::QueueWorkload;
