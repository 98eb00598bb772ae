use std::fs;
use std::future::pending;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that stop the program.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// SIGHUP; `None` if the program was started with SIGHUP ignored.
    hangup: Option<Signal>,
}

impl Signals {
    /// Takes over the signals, so that they no longer end the process. A SIGHUP that is ignored when the
    /// process starts, for example under `nohup`, stays ignored.
    pub(super) fn take() -> io::Result<Self> {
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hangup = if ignores_hangup(&status) { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { terminate, interrupt, hangup })
    }

    /// Waits for the next signal and returns its number.
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

/// Returns whether a process with this `/proc/self/status` ignores SIGHUP. SIGHUP is the lowest bit of the
/// mask.
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
