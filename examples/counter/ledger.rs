use anyhow::Context;
use docent::Fence;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Content of the file: the number, and the fence under which it was written, such as `812 4294968123`.
///
/// A resource that checks fences itself, in one step with the write, would refuse a holder that was paused
/// until another took over. A plain file cannot do that: each writer compares the fences before it writes,
/// and a process that is paused exactly in between would still write late, whatever lock it held. Closing
/// that gap requires a store with conditional writes, or a write to ZooKeeper by `guard.transaction()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) number: u64,
    fence: u64,
}

impl Ledger {
    /// Writes 0, before any process counts.
    pub(crate) fn start(path: &Path) -> anyhow::Result<()> {
        Self { number: 0, fence: 0 }.write(path)
    }

    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut text = String::new();
        File::open(path)?.read_to_string(&mut text)?;
        let (number, fence) = text
            .trim_end()
            .split_once(' ')
            .with_context(|| format!("the file contains {text:?}, expected a number and a fence"))?;
        Ok(Self { number: number.parse()?, fence: fence.parse()? })
    }

    /// Writes `number` under `fence`. Returns false and writes nothing if a later holder of the lock has
    /// already written.
    pub(crate) fn replace(path: &Path, number: u64, fence: Fence) -> anyhow::Result<bool> {
        let fence = fence.as_u64();
        if Self::read(path)?.fence >= fence {
            return Ok(false);
        }
        Self { number, fence }.write(path)?;
        Ok(true)
    }

    /// Writes only to an existing file: a file that was removed is not created again.
    fn write(self, path: &Path) -> anyhow::Result<()> {
        let mut file = File::options().write(true).truncate(true).open(path)?;
        file.write_all(format!("{} {}\n", self.number, self.fence).as_bytes())?;
        Ok(())
    }
}
