use crate::server::megabytes;
use anyhow::{Context, Result};
use docent_battery::chromium::{self, Driver};
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Switches for exact sizes of the heap, and for a function that collects its garbage.
const SWITCHES: [&str; 2] = ["--enable-precise-memory-info", "--js-flags=--expose-gc"];

/// Defines `painted`, which returns a promise of the time of the first frame that shows a waiter. The next
/// frame's callback takes the time, so it is late by up to the interval between two frames.
const WITNESS: &str = "const [times, waiting] = [new Map(), new Map()];
    const note = owner => requestAnimationFrame(() => requestAnimationFrame(() => {
        times.set(owner, performance.timeOrigin + performance.now());
        waiting.get(owner)?.(times.get(owner));
    }));
    window.painted = owner => new Promise(done => {
        if (times.get(owner)) done(times.get(owner));
        else waiting.set(owner, done);
    });
    new MutationObserver(() => {
        const owner = document.querySelector('.is-waiter .owner')?.textContent;
        if (!owner || times.has(owner)) return;
        times.set(owner, 0);
        note(owner);
    }).observe(document.body, { subtree: true, childList: true, characterData: true });";

/// A page in a headless Chromium.
///
/// # On drop
///
/// The browser is killed.
#[derive(Debug)]
pub(super) struct Browser {
    client: Client,
    driver: Driver,
    _profile: TempDir,
}

/// Memory of a page in megabytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// Objects of the page's scripts, after a collection.
    pub(super) heap: f64,
    /// Resident memory of the process that renders the page.
    pub(super) resident: f64,
}

impl Browser {
    /// Starts a browser, and opens the page of a lock in it.
    pub(super) async fn open(url: &str) -> Result<Self> {
        let (driver, profile) = (Driver::start()?, TempDir::new()?);
        let switches = chromium::SWITCHES.iter().chain(&SWITCHES).map(|switch| (*switch).to_owned());
        let folder = format!("--user-data-dir={}", profile.path().display());
        let switches: Vec<String> = switches.chain([folder]).collect();
        let options = json!({ "binary": chromium::PROGRAM, "args": switches });
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities([("goog:chromeOptions".to_owned(), options)].into_iter().collect());
        let client = builder.connect(&driver.url()).await?;
        let browser = Self { client, driver, _profile: profile };
        browser.client.goto(url).await?;
        browser.client.execute(WITNESS, Vec::new()).await?;
        Ok(browser)
    }

    /// Waits until the page shows a waiter, and returns the time of the frame.
    pub(super) async fn painted(&self, owner: &str) -> Result<SystemTime> {
        let time = self.client.execute("return painted(arguments[0])", vec![owner.into()]).await?;
        Ok(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(number(&time)? / 1_000.0))
    }

    /// Returns the memory of the page.
    pub(super) async fn memory(&self) -> Result<Memory> {
        let script = "gc(); return performance.memory.usedJSHeapSize";
        let heap = number(&self.client.execute(script, Vec::new()).await?)?;
        let renderers = chromium::processes(self.driver.id()).into_iter().filter(|pid| is_renderer(*pid));
        // The browser keeps a smaller one for the next page.
        let resident = renderers.filter_map(|pid| megabytes(pid).ok()).reduce(f64::max);
        let resident = resident.context("no process renders the page")?;
        Ok(Memory { heap: heap / f64::from(1 << 20), resident })
    }
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().with_context(|| format!("the page returned {value} instead of a number"))
}

fn is_renderer(pid: u32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // Processes that the browser forks separate their words by blanks.
    words.split(|byte| [0, b' '].contains(byte)).any(|word| word == b"--type=renderer")
}
