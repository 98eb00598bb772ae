//! A run of the recipes bench that is as short as possible.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use std::fs;
use std::process::Command;

/// The requested file contains the figures of both sides.
#[test]
#[ignore = "needs a real ZooKeeper, Curator and kazoo: run `cargo xtask test`"]
fn a_short_run_measures_all_sides() {
    let folder = tempfile::tempdir().unwrap();
    let (json, markdown) = (folder.path().join("figures.json"), folder.path().join("figures.md"));
    let mut bench = Command::new(env!("CARGO_BIN_EXE_docent-bench"));
    bench.args(["recipes", "--quick", "--only", "uncontended", "--rounds", "1", "--window", "100", "--json"]);
    bench.arg(&json).arg("--markdown").arg(&markdown).arg("--charts").arg(folder.path().join("charts"));
    let output = bench.output().unwrap();
    assert!(output.status.success(), "{output:?}");

    let figures: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let rate = &figures["workloads"][0]["figures"][0];
    assert!(rate["docent"]["median"].as_f64().unwrap() > 0.0, "{figures}");
    assert!(rate["ratio"]["median"].as_f64().unwrap() > 0.0, "{figures}");
    assert!(rate["docent_to_bare"]["median"].as_f64().unwrap() > 0.0, "{figures}");
    assert_eq!(figures["workloads"][0]["sides"].as_array().unwrap().len(), 4);
    assert!(fs::read_to_string(markdown).unwrap().contains("### Compared with Curator"));
    assert!(
        fs::read_to_string(folder.path().join("charts/recipes-rates.svg")).unwrap().ends_with("</svg>\n")
    );
}

/// No process is started if the figures could not be written.
#[test]
fn files_that_cannot_be_written_are_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for option in ["--json", "--markdown", "--charts"] {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_docent-bench"));
        bench.args(["recipes", "--quick", option]).arg(file.join("below"));
        let output = bench.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("cannot write"), "{option}: {said}");
        assert!(!said.contains("counting"), "{option}: {said}");
    }
}
