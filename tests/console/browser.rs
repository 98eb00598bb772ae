//! A headless Chromium.

use crate::commands::Command;
use docent_battery::chromium::{self, Driver};
use docent_battery::packages::AXE;
use docent_tests::{PATIENCE, soon};
use fantoccini::elements::Element;
use fantoccini::error::CmdError;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

/// Limits the browsers to one at a time, because each takes several processes and a few hundred megabytes.
static BROWSERS: Semaphore = Semaphore::const_new(1);

/// Pause between two checks of a page. Each takes time of several processes.
const POLL: Duration = Duration::from_millis(20);

/// Runs before the scripts of each document, and notes what a page must not do.
const WITNESS: &str = "window.seen = { refused: [], shift: 0 };
    addEventListener('securitypolicyviolation', event => {
        seen.refused.push(`${event.violatedDirective} ${event.blockedURI}`);
    });
    new PerformanceObserver(list => list.getEntries().forEach(entry => {
        if (!entry.hadRecentInput) seen.shift += entry.value;
    })).observe({ type: 'layout-shift', buffered: true });";

/// A window of a headless Chromium with its own profile, at the pages of one origin.
///
/// # On drop
///
/// The browser is killed.
pub(crate) struct Browser {
    client: Client,
    origin: String,
    driver: Driver,
    _profile: TempDir,
    _permit: SemaphorePermit<'static>,
}

/// Size, colours and motion of a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) name: &'static str,
    width: u32,
    height: u32,
    scheme: &'static str,
    motion: &'static str,
}

/// The looks in which every page must be usable.
pub(crate) const LOOKS: [Look; 3] = [LIGHT, DARK, PHONE];
pub(crate) const LIGHT: Look =
    Look { name: "light", width: 1280, height: 800, scheme: "light", motion: "no-preference" };
pub(crate) const DARK: Look = Look { name: "dark", scheme: "dark", ..LIGHT };
pub(crate) const PHONE: Look = Look { name: "phone", width: 360, height: 640, ..LIGHT };
/// The look of a user who has asked for less motion.
pub(crate) const CALM: Look = Look { name: "calm", motion: "reduce", ..LIGHT };

/// Returns true for errors about a page or an element that is being replaced: nothing was done.
fn is_transient(error: &CmdError) -> bool {
    let text = error.to_string();
    ["no such execution context", "stale element", "not attached"].iter().any(|it| text.contains(it))
}

impl Browser {
    /// Starts a browser for the pages of `origin`, such as `http://127.0.0.1:8484`.
    pub(crate) async fn start(origin: &str) -> Self {
        let permit = BROWSERS.acquire().await.unwrap();
        let (driver, profile) = (Driver::start().unwrap(), TempDir::new().unwrap());
        let mut arguments = chromium::SWITCHES.map(str::to_owned).to_vec();
        arguments.push(format!("--user-data-dir={}", profile.path().display()));
        let Value::Object(capabilities) = json!({
            "goog:chromeOptions": { "binary": chromium::PROGRAM, "args": arguments },
            "goog:loggingPrefs": { "performance": "ALL", "browser": "ALL" },
            // A dialog stays, so that a test notices it.
            "unhandledPromptBehavior": "ignore",
        }) else {
            unreachable!("the capabilities are an object")
        };
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let session = builder.capabilities(capabilities);
        let client = soon(session.connect(&driver.url())).await.unwrap();
        let browser = Self { client, origin: origin.to_owned(), driver, _profile: profile, _permit: permit };
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": WITNESS })).await;
        browser.look(LIGHT).await;
        // The window began with a page of the browser's own.
        browser.open_url("about:blank").await;
        browser.requests().await;
        browser
    }

    /// Opens a page of the origin, and waits until it is loaded.
    pub(crate) async fn open(&self, path: &str) {
        self.open_url(&format!("{}{path}", self.origin)).await;
    }

    /// Opens a page of any origin, and waits until it is loaded.
    pub(crate) async fn open_url(&self, url: &str) {
        soon(self.client.goto(url)).await.unwrap();
    }

    /// Path and query of the current page.
    pub(crate) async fn location(&self) -> String {
        self.eval("return location.pathname + location.search").await.as_str().unwrap().to_owned()
    }

    /// Runs the body of a function and returns its result.
    pub(crate) async fn eval(&self, script: &str) -> Value {
        self.eval_with(script, &[]).await
    }

    /// Does the same as [`eval`](Self::eval), with arguments.
    pub(crate) async fn eval_with(&self, script: &str, arguments: &[Value]) -> Value {
        // While a page is being replaced, there is nothing in which a script could run.
        soon(async {
            loop {
                match self.client.execute(script, arguments.to_vec()).await {
                    Ok(result) => return result,
                    Err(error) if is_transient(&error) => sleep(POLL).await,
                    Err(error) => panic!("{script}: {error}"),
                }
            }
        })
        .await
    }

    /// Runs the body of a function, whose last argument is a function that takes the result.
    pub(crate) async fn eval_async(&self, script: &str, arguments: &[Value]) -> Value {
        soon(self.client.execute_async(script, arguments.to_vec())).await.unwrap()
    }

    /// Waits until the body of a function returns true. A page that is being replaced returns nothing.
    pub(crate) async fn until(&self, script: &str) {
        let mut last = String::new();
        let holds = async {
            loop {
                match self.client.execute(script, Vec::new()).await {
                    Ok(Value::Bool(true)) => return,
                    other => last = format!("{other:?}"),
                }
                sleep(POLL).await;
            }
        };
        if timeout(PATIENCE, holds).await.is_err() {
            let text = self.text("body").await.unwrap_or_default();
            panic!("{script}: {last} at {}\n{text}", self.location().await);
        }
    }

    /// Waits until the page shows the present, if it is one that follows it.
    pub(crate) async fn until_live(&self) {
        self.until("return (document.querySelector('#connection')?.textContent ?? 'Live') === 'Live'").await;
    }

    /// Text of the first element that matches, with single blanks, or `None` if there is no such element.
    pub(crate) async fn text(&self, css: &str) -> Option<String> {
        self.texts(css).await.into_iter().next()
    }

    /// Texts of all elements that match, with single blanks, also between elements.
    pub(crate) async fn texts(&self, css: &str) -> Vec<String> {
        let script = "return [...document.querySelectorAll(arguments[0])].map(element => {
            const [texts, words] = [document.createNodeIterator(element, NodeFilter.SHOW_TEXT), []];
            for (let text; (text = texts.nextNode());) words.push(text.data);
            return words.join(' ').replace(/\\s+/g, ' ').trim();
        })";
        serde_json::from_value(self.eval_with(script, &[css.into()]).await).unwrap()
    }

    /// Waits until the texts of the elements that match satisfy `holds`.
    pub(crate) async fn until_texts(&self, css: &str, holds: impl Fn(&[String]) -> bool) {
        let mut last = Vec::new();
        let holds = async {
            while !holds(&last) {
                sleep(POLL).await;
                last = self.texts(css).await;
            }
        };
        if timeout(PATIENCE, holds).await.is_err() {
            let (at, body) = (self.location().await, self.text("body").await);
            panic!("the texts of {css} stay {last:?} at {at}: {body:?}");
        }
    }

    /// Waits until the text of the first element that matches satisfies `holds`.
    pub(crate) async fn until_text(&self, css: &str, holds: impl Fn(&str) -> bool) {
        self.until_texts(css, |texts| texts.first().is_some_and(|text| holds(text))).await;
    }

    /// Addresses of the links in the content of the page.
    pub(crate) async fn links(&self) -> Vec<String> {
        let script =
            "return [...document.querySelectorAll('main a[href]')].map(link => link.getAttribute('href'))";
        serde_json::from_value(self.eval(script).await).unwrap()
    }

    /// Waits until the list has a row that begins with the text `name` and contains all of `words`.
    pub(crate) async fn until_row(&self, name: &str, words: &[&str]) {
        let is_wanted = |row: &String| row.starts_with(name) && words.iter().all(|word| row.contains(word));
        self.until_texts("#rows > :not(.spacer)", |rows| rows.iter().any(is_wanted)).await;
    }

    /// Status of the reply that brought the current page.
    pub(crate) async fn status(&self) -> u64 {
        self.until("return performance.getEntriesByType('navigation')[0]?.responseStatus > 0").await;
        let script = "return performance.getEntriesByType('navigation')[0].responseStatus";
        self.eval(script).await.as_u64().unwrap()
    }

    pub(crate) async fn find(&self, css: &str) -> Element {
        let found = soon(self.client.find(Locator::Css(css))).await;
        found.unwrap_or_else(|error| panic!("{css}: {error}"))
    }

    pub(crate) async fn click(&self, css: &str) {
        // A live page may replace an element between its search and the click.
        soon(async {
            loop {
                match self.find(css).await.click().await {
                    Ok(()) => return,
                    Err(error) if is_transient(&error) => sleep(POLL).await,
                    Err(error) => panic!("{css}: {error}"),
                }
            }
        })
        .await;
    }

    /// Presses keys one after the other, wherever the focus is.
    pub(crate) async fn press(&self, keys: &str) {
        let active = soon(self.client.active_element()).await.unwrap();
        soon(active.send_keys(keys)).await.unwrap();
    }

    /// Changes size, colours and motion of the window.
    pub(crate) async fn look(&self, look: Look) {
        let metrics = json!({
            "width": look.width, "height": look.height, "deviceScaleFactor": 1, "mobile": look.width < 500,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics).await;
        let features = json!([
            { "name": "prefers-color-scheme", "value": look.scheme },
            { "name": "prefers-reduced-motion", "value": look.motion },
        ]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features })).await;
    }

    /// Makes the pages that are opened from now on run no script.
    pub(crate) async fn disable_scripts(&self) {
        self.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": true })).await;
    }

    /// Deletes all cookies of the current page.
    pub(crate) async fn forget_cookies(&self) {
        soon(self.client.delete_all_cookies()).await.unwrap();
    }

    /// Picture of the window as a PNG.
    pub(crate) async fn screenshot(&self) -> Vec<u8> {
        soon(self.client.screenshot()).await.unwrap()
    }

    /// Violations of serious or critical impact that axe-core finds in the current page.
    pub(crate) async fn violations(&self) -> Vec<String> {
        let axe = AXE.text(Path::new(env!("CARGO_TARGET_TMPDIR")), "axe-core/axe.min.js").await.unwrap();
        self.eval(&axe).await;
        let script = "const done = arguments[arguments.length - 1];
            axe.run(document, { resultTypes: ['violations'] }).then(found => done(found.violations
                .filter(one => ['serious', 'critical'].includes(one.impact))
                .flatMap(one => one.nodes.map(node => `${one.id}: ${node.html} ${node.failureSummary}`))),
                error => done([String(error)]))";
        serde_json::from_value(self.eval_async(script, &[]).await).unwrap()
    }

    /// URLs of the requests that the browser has sent since the last time, of pages and of what they load.
    pub(crate) async fn requests(&self) -> Vec<String> {
        let entries = self.command(Command::log("performance")).await;
        let message = |entry: &Value| serde_json::from_str::<Value>(entry["message"].as_str()?).ok();
        let messages = entries.as_array().unwrap().iter().filter_map(message);
        let requests = messages.filter(|it| it["message"]["method"] == "Network.requestWillBeSent");
        requests.map(|it| it["message"]["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }

    /// Errors that the browser has logged since the last time, such as exceptions and refused loads.
    pub(crate) async fn errors(&self) -> Vec<String> {
        let entries = self.command(Command::log("browser")).await;
        let severe = entries.as_array().unwrap().iter().filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
    }

    /// Loads and scripts of the current page that its policy refused.
    pub(crate) async fn refused(&self) -> Vec<String> {
        serde_json::from_value(self.eval("return seen.refused").await).unwrap()
    }

    /// Sum of the layout shifts of the current page that no input caused.
    pub(crate) async fn layout_shift(&self) -> f64 {
        self.eval("return seen.shift").await.as_f64().unwrap()
    }

    /// Returns whether a dialog of a script is open.
    pub(crate) async fn has_dialog(&self) -> bool {
        soon(self.client.get_alert_text()).await.is_ok()
    }

    /// Identifier of the process group of the browser.
    pub(crate) fn group(&self) -> u32 {
        self.driver.id()
    }

    async fn devtools(&self, name: &str, parameters: &Value) -> Value {
        self.command(Command::devtools(name, parameters)).await
    }

    async fn command(&self, command: Command) -> Value {
        soon(self.client.issue_cmd(command)).await.unwrap()
    }
}
