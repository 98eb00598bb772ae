//! Pictures of the example `console`, as the guide shows them.

use crate::browser::{Browser, DARK, LIGHT, PHONE};
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Environment variable with the folder for the pictures, as `cargo xtask screenshots` sets it.
const FOLDER: &str = "DOCENT_SCREENSHOTS";

/// Maximum size of a picture in bytes, because the pictures are part of the repository.
const MAX_SIZE: usize = 150_000;

/// The example, and the origin of its pages.
struct Example {
    _process: Child,
    origin: String,
}

impl Example {
    async fn start() -> Self {
        let test = env::current_exe().unwrap();
        let program = test.ancestors().nth(2).unwrap().join("examples/console");
        assert!(program.exists(), "{program:?} is missing: cargo build --package docent-examples --examples");
        let mut command = Command::new(program);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().unwrap();
        let origin = line.strip_prefix("open ").and_then(|rest| rest.strip_suffix('/'));
        let origin = origin.unwrap_or_else(|| panic!("{line:?} has no address")).to_owned();
        Self { _process: process, origin }
    }
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn the_example_has_pages_worth_a_picture() {
    let example = Example::start().await;
    let browser = Browser::start(&example.origin).await;
    let folder = env::var_os(FOLDER).map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    for (look, path, shown) in [
        (LIGHT, "/", ".changes > li:nth-child(12), .finding"),
        (DARK, "/at/shop/report", ".contender:nth-child(3)"),
        (PHONE, "/locks", "#rows > tr:nth-child(2)"),
    ] {
        browser.look(look).await;
        browser.open(path).await;
        browser.until_live().await;
        let all = format!("return '{shown}'.split(', ').every(css => document.querySelector(css))");
        browser.until(&all).await;
        let picture = browser.screenshot().await;
        assert!(picture.len() < MAX_SIZE, "{} has {} bytes", look.name, picture.len());
        fs::write(folder.join(format!("console-{}.png", look.name)), picture).unwrap();
    }
}
