use crate::job::Job;
use docent::Delivery;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Report of a consumer to its parent, one line of JSON each on its standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) name: String,
    pub(crate) what: What,
    pub(crate) job: Job,
    /// How often the job was handed out.
    pub(crate) deliveries: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    /// It has a job.
    Took,
    /// It has acknowledged the job.
    Did,
}

impl Said {
    pub(crate) fn new(name: &str, what: What, delivery: &Delivery<Job>) -> Self {
        let deliveries = delivery.deliveries().unwrap_or_default();
        Self { name: name.to_owned(), what, job: delivery.item().clone(), deliveries }
    }

    pub(crate) fn print(&self) -> anyhow::Result<()> {
        println!("{}", serde_json::to_string(self)?);
        Ok(())
    }
}

impl FromStr for Said {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}
