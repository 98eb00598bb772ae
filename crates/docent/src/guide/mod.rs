//! - [Quick start](crate::guide::start)
//! - [Which recipe do I need?](crate::guide::which_recipe)
//! - [Locks](crate::guide::locks)
//! - [Mutex](crate::guide::mutex)
//! - [Read/write lock](crate::guide::read_write_lock)
//! - [Semaphore](crate::guide::semaphore)
//! - [Multi-lock](crate::guide::multi_lock)
//! - [Barriers](crate::guide::barriers)
//! - [Partitioner](crate::guide::partitioner)
//! - [Timed lease](crate::guide::timed_lease)
//! - [Election](crate::guide::election)
//! - [Queue](crate::guide::queue)
//! - [Discovery](crate::guide::discovery)
//! - [Balancing requests](crate::guide::balancing)
//! - [Membership](crate::guide::membership)
//! - [Configuration](crate::guide::config)
//! - [Shared values and counters](crate::guide::shared_values)
//! - [Timeouts](crate::guide::timeouts)
//! - [Errors and retries](crate::guide::errors)
//! - [A service's life](crate::guide::service)
//! - [Testing your service](crate::guide::testing)
//! - [Observability](crate::guide::observability)
//! - [The console](crate::guide::console)
//! - [Security](crate::guide::security)
//! - [Kubernetes](crate::guide::kubernetes)
//! - [Production](crate::guide::production)
//! - [Cookbook](crate::guide::cookbook)
//! - [From Curator](crate::guide::from_curator)
//! - [From kazoo](crate::guide::from_kazoo)
//! - [From etcd](crate::guide::from_etcd)
//! - [From Consul](crate::guide::from_consul)
//! - [Comparison with other lock services](crate::guide::comparison)
//! - [Questions](crate::guide::faq)
//! - [Settings, features, modules](crate::guide::settings)
//! - [Guarantees](crate::guide::guarantees)
//! - [Failure model](crate::guide::failure_model)
//! - [Fencing a database](crate::guide::fencing)
//! - [How it works](crate::guide::how_it_works)
//! - [The command line](crate::guide::command_line)
//! - [Views for operators](crate::guide::views)
//! - [JSON of the command line](crate::guide::json)
//! - [Write a recipe](crate::guide::write_a_recipe)
//! - [What 0.1 promises](crate::guide::stability)

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
#[doc = include_str!("errors.md")]
pub mod errors {}
#[doc = include_str!("service.md")]
pub mod service {}
#[doc = include_str!("testing.md")]
pub mod testing {}
#[doc = include_str!("observability.md")]
pub mod observability {}
#[doc = include_str!("console.md")]
pub mod console {}
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
#[doc = include_str!("views.md")]
pub mod views {}
#[doc = include_str!("json.md")]
pub mod json {}
#[doc = include_str!("write_a_recipe.md")]
pub mod write_a_recipe {}
#[doc = include_str!("stability.md")]
pub mod stability {}
