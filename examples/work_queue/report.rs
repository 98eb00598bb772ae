use crate::job::Job;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Report of a consumer to its parent, one line of JSON each on its standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) what: What,
    pub(crate) job: Job,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    /// The consumer has taken a job.
    Took,
    /// The consumer has done the job, and acknowledges it.
    Did,
}

impl Report {
    pub(crate) fn new(name: &str, what: What, job: &Job) -> Self {
        Self { name: name.to_owned(), what, job: job.clone() }
    }

    pub(crate) fn print(&self) -> anyhow::Result<()> {
        println!("{}", serde_json::to_string(self)?);
        Ok(())
    }
}

impl FromStr for Report {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}
