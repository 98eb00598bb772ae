//! Queues: producers, consumers, and what is written down of them.

mod consumer;
mod diary;
mod producer;
mod workload;

pub(super) use workload::QueueWorkload;
