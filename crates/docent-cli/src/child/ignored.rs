/// Returns the signals that this process was started to ignore, for example by `nohup`, as a bit mask: signal
/// 1 is the lowest bit. docent must not listen for an ignored signal, and the signal stays ignored in
/// commands.
pub(super) fn ignored_signals() -> u64 {
    std::fs::read_to_string("/proc/self/status").map_or(0, |status| in_status(&status))
}

fn in_status(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        assert_eq!(
            in_status("Name:\tdocent\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n"),
            0x1001
        );
        assert_eq!(in_status("Name:\tdocent\n"), 0);
    }
}
