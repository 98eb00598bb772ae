use docent::Fence;
use std::fmt;
use std::str::FromStr;

/// Report of a worker to its parent, one line each on its standard output: it did a piece of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) name: String,
    pub(crate) fence: Fence,
    pub(crate) number: u64,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.name, self.fence, self.number)
    }
}

impl FromStr for Done {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let words: Vec<_> = text.split(' ').collect();
        let [name, fence, number] = words[..] else {
            anyhow::bail!("unexpected output of a worker: {text:?}")
        };
        Ok(Self { name: name.to_owned(), fence: fence.parse()?, number: number.parse()? })
    }
}
