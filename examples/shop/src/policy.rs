//! Terms of sale, which operators change while the shop is open: a configuration with live updates.

use docent::{Client, Config, Error};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Maximum wait for the published policy at the start. After that, the default is used until the policy
/// arrives.
const PATIENCE: Duration = Duration::from_millis(500);

/// Terms of sale.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Policy {
    /// Maximum quantity of an item in one order.
    pub most_per_order: u32,
    /// Time for charging a card, in milliseconds.
    pub charge_ms: u64,
    /// Level to which the leader fills up the stock.
    pub restock_to: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self { most_per_order: 10, charge_ms: 2, restock_to: 100_000 }
    }
}

/// Returns the policy's configuration, for publishers and subscribers.
///
/// # Errors
/// Only if the path is invalid, which would be a programming error.
pub fn config(client: &Client) -> Result<Config<Policy>, Error> {
    Config::builder(client, "/config/policy")
        .validate(|policy: &Policy| match policy.most_per_order {
            0 => Err("most_per_order 0 must be at least 1"),
            _ => Ok(()),
        })
        .default_value(Policy::default())
        .fallback_after(PATIENCE)
        .metrics_name("policy")
        .build()
}
