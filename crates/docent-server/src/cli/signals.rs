use std::fs;
use std::future::pending;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that ask the program to end.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// `None` if the program was started to ignore it.
    hangup: Option<Signal>,
}

impl Signals {
    /// From here on they no longer end the program by themselves. A hangup that is ignored from the start, as
    /// by `nohup`, stays ignored.
    pub(super) fn take() -> io::Result<Self> {
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hangup = if ignores_hangup(&status) { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { terminate, interrupt, hangup })
    }

    /// Waits for the next one, and returns its number.
    pub(super) async fn next(&mut self) -> u8 {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => 15,
            _ = self.interrupt.recv() => 2,
            _ = hangup => 1,
        }
    }
}

/// True if a process with this `/proc/self/status` ignores SIGHUP, whose bit is the lowest.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::ignores_hangup;

    #[test]
    fn an_ignored_hangup_is_found_in_the_status() {
        assert!(ignores_hangup("Name:\tdocent\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("Name:\tdocent\nSigIgn:\t0000000000001000\n"));
        assert!(!ignores_hangup("Name:\tdocent\n"));
    }
}
