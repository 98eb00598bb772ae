//! Queues: producers, consumers, and their records.

mod consumer;
mod diary;
mod producer;
mod workload;

pub(super) use workload::QueueWorkload;
