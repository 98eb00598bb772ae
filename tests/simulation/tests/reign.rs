//! Without faults a leader leads as long as it wants.

use std::process::Command;

/// The last line of a run without faults, in which all candidates try to lead permanently.
fn calm(seed: &str, clients: &str, seconds: &str, step_ms: &str) -> String {
    let arguments = [
        "--recipe",
        "reign",
        "--calm",
        "--seed",
        seed,
        "--clients",
        clients,
        "--seconds",
        seconds,
        "--step-ms",
        step_ms,
    ];
    let output =
        Command::new(env!("CARGO_BIN_EXE_simulation")).args(arguments).output().expect("the binary runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().last().expect("a last line").to_owned()
}

fn figure(line: &str, key: &str) -> u64 {
    let word =
        line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('=')).expect("the word exists");
    word.parse().expect("the value is a number")
}

#[test]
fn no_leader_changes_in_an_hour_without_faults() {
    // In this world a tick is 500 ms and the session timeout 10 s. Time may advance in large steps, and
    // heartbeats are rare.
    let line = calm("28", "3", "3600", "200");
    assert!(line.contains("verdict=ok"), "{line}");
    assert!(figure(&line, "simulated_ms") >= 3_600_000, "{line}");
    assert_eq!(figure(&line, "attempts"), 3, "{line}");
    assert_eq!(figure(&line, "grants"), 1, "{line}");
    assert_eq!(figure(&line, "losses"), 0, "{line}");
}
