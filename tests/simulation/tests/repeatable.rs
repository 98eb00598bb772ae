//! A seed determines a history. This makes a failure reproducible.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_simulation")).args(arguments).output().expect("the binary runs")
}

/// The last line of a short run of `seed`. All of its words must be the same in another run.
fn line(seed: &str) -> String {
    let output = run(&["--seed", seed, "--clients", "3", "--seconds", "8"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().last().expect("a last line").to_owned()
}

fn word<'a>(line: &'a str, key: &str) -> &'a str {
    line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('=')).expect("the word exists")
}

#[test]
fn the_same_seed_gives_the_same_history_in_another_process() {
    let first = line("3");
    assert_eq!(first, line("3"));
    let other = line("4");
    assert_ne!(word(&first, "hash"), word(&other, "hash"));
    for line in [first, other] {
        assert_ne!(word(&line, "grants"), "0", "{line}");
        assert_ne!(word(&line, "faults"), "0", "{line}");
    }
}

#[test]
fn a_run_can_be_without_faults() {
    let output = run(&["--seed", "1", "--clients", "2", "--seconds", "5", "--calm", "--trace"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}");
    assert!(text.contains(" c0     Started\n") && text.contains(" server  "), "{text}");
    let faults: Vec<&str> = text.lines().filter(|line| line.contains("Fault(")).collect();
    assert!(faults.iter().all(|line| line.contains("Fault(Cancelled)")), "{faults:?}");
}

#[test]
fn a_run_that_cannot_start_is_not_taken_for_a_good_run() {
    for arguments in [&["--seed", "1", "--recipe", "none"][..], &["--seed", "1", "--planted", "none"], &[]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
