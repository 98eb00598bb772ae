//! Terms of sale, which operators change while the shop is open: a configuration that is followed.

use docent::{Client, Config, Error};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longest wait for the published policy at the start. Then the default holds until there is one.
const PATIENCE: Duration = Duration::from_millis(500);

/// Terms of sale.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Policy {
    /// Most of an item in one order.
    pub most_per_order: u32,
    /// How long it takes to charge a card, in milliseconds.
    pub charge_ms: u64,
    /// Level to which the leader fills up the stock.
    pub restock_to: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self { most_per_order: 10, charge_ms: 2, restock_to: 100_000 }
    }
}

/// The policy's configuration, for those who publish it and those who follow it.
///
/// # Errors
/// None, but for a mistake in the path.
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
