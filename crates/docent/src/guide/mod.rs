//! - [Quick start](start)
//! - [Which recipe do I need?](which_recipe)
//! - [Locks](locks)
//! - [Mutex](mutex)
//! - [Read/write lock](read_write_lock)
//! - [Semaphore](semaphore)
//! - [Multi-lock](multi_lock)
//! - [Barriers](barriers)
//! - [Partitioner](partitioner)
//! - [Timed lease](timed_lease)
//! - [Election](election)
//! - [Queue](queue)
//! - [Discovery](discovery)
//! - [Balancing requests](balancing)
//! - [Membership](membership)
//! - [Configuration](config)
//! - [Shared values and counters](shared_values)
//! - [Timeouts](timeouts)
//! - [Connection state and retries](retries)
//! - [A service's life](service)
//! - [Testing your service](testing)
//! - [Observability](observability)
//! - [Security](security)
//! - [Kubernetes](kubernetes)
//! - [Production](production)
//! - [Cookbook](cookbook)
//! - [From Curator](from_curator)
//! - [From kazoo](from_kazoo)
//! - [From etcd](from_etcd)
//! - [From Consul](from_consul)
//! - [Comparison with other lock services](comparison)
//! - [Questions](faq)
//! - [Settings, features, modules](settings)
//! - [Guarantees](guarantees)
//! - [Failure model](failure_model)
//! - [Fencing a database](fencing)
//! - [How it works](how_it_works)
//! - [The command line](command_line)
//! - [Write a recipe](write_a_recipe)

// Generated from `docs/guide`, in the order of `docs/SUMMARY.md`, by `cargo xtask pages`.
#[doc = include_str!("start.md")]
pub mod start {}
#[doc = include_str!("which_recipe.md")]
pub mod which_recipe {}
#[doc = include_str!("locks.md")]
pub mod locks {}
#[doc = include_str!("mutex.md")]
pub mod mutex {}
#[doc = include_str!("read_write_lock.md")]
pub mod read_write_lock {}
#[doc = include_str!("semaphore.md")]
pub mod semaphore {}
#[doc = include_str!("multi_lock.md")]
pub mod multi_lock {}
#[doc = include_str!("barriers.md")]
pub mod barriers {}
#[doc = include_str!("partitioner.md")]
pub mod partitioner {}
#[doc = include_str!("timed_lease.md")]
pub mod timed_lease {}
#[doc = include_str!("election.md")]
pub mod election {}
#[doc = include_str!("queue.md")]
pub mod queue {}
#[doc = include_str!("discovery.md")]
pub mod discovery {}
#[doc = include_str!("balancing.md")]
pub mod balancing {}
#[doc = include_str!("membership.md")]
pub mod membership {}
#[doc = include_str!("config.md")]
pub mod config {}
#[doc = include_str!("shared_values.md")]
pub mod shared_values {}
#[doc = include_str!("timeouts.md")]
pub mod timeouts {}
#[doc = include_str!("retries.md")]
pub mod retries {}
#[doc = include_str!("service.md")]
pub mod service {}
#[doc = include_str!("testing.md")]
pub mod testing {}
#[doc = include_str!("observability.md")]
pub mod observability {}
#[doc = include_str!("security.md")]
pub mod security {}
#[doc = include_str!("kubernetes.md")]
pub mod kubernetes {}
#[doc = include_str!("production.md")]
pub mod production {}
#[doc = include_str!("cookbook.md")]
pub mod cookbook {}
#[doc = include_str!("from_curator.md")]
pub mod from_curator {}
#[doc = include_str!("from_kazoo.md")]
pub mod from_kazoo {}
#[doc = include_str!("from_etcd.md")]
pub mod from_etcd {}
#[doc = include_str!("from_consul.md")]
pub mod from_consul {}
#[doc = include_str!("comparison.md")]
pub mod comparison {}
#[doc = include_str!("faq.md")]
pub mod faq {}
#[doc = include_str!("settings.md")]
pub mod settings {}
#[doc = include_str!("guarantees.md")]
pub mod guarantees {}
#[doc = include_str!("failure_model.md")]
pub mod failure_model {}
#[doc = include_str!("fencing.md")]
pub mod fencing {}
#[doc = include_str!("how_it_works.md")]
pub mod how_it_works {}
#[doc = include_str!("command_line.md")]
pub mod command_line {}
#[doc = include_str!("write_a_recipe.md")]
pub mod write_a_recipe {}
