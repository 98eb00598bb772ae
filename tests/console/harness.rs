//! The browser itself, on small pages of the test's own.

use crate::browser::{Browser, DARK, PHONE};
use crate::site::Site;
use axum::Router;
use axum::response::Html;
use axum::routing::get;
use docent_battery::chromium::processes;
use docent_tests::until;

const PAGE: &str = "<!doctype html><html lang=en><title>A page</title><meta name=viewport content='width=device-width'>
    <style>body { margin: 0 } @media (prefers-color-scheme: dark) { body { color: white; background: black } }</style>
    <main><h1>Counter</h1><p id=number>0</p><button onclick='number.textContent++'>More</button></main>";

const WRONG: &str =
    "<!doctype html><html lang=en><title>A wrong page</title><main><h1>Wrong</h1><input></main>
    <img src='http://localhost:9/other.png' alt=''>
    <script>setTimeout(() => document.querySelector('h1').style.height = '300px', 100)</script>";

const STRICT: &str = "<!doctype html><html lang=en><title>A strict page</title><main><h1>Strict</h1></main>
    <script>document.querySelector('h1').textContent = 'Not strict'</script>";

fn site() -> Site {
    let policy = [("content-security-policy", "default-src 'none'")];
    Site::serve(
        Router::new()
            .route("/", get(async || Html(PAGE)))
            .route("/wrong", get(async || Html(WRONG)))
            .route("/strict", get(async move || (policy, Html(STRICT)))),
    )
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn a_page_is_read_changed_and_pictured() {
    let site = site();
    let browser = Browser::start(&site.origin()).await;
    browser.open("/").await;
    assert_eq!(browser.text("h1").await.as_deref(), Some("Counter"));
    assert_eq!(browser.text("h2").await, None);
    browser.click("button").await;
    browser.until_text("#number", |text| text == "1").await;
    browser.press(" ").await;
    browser.until_text("#number", |text| text == "2").await;
    browser.look(PHONE).await;
    assert_eq!(browser.eval("return innerWidth").await, 360);
    browser.look(DARK).await;
    assert_eq!(browser.eval("return matchMedia('(prefers-color-scheme: dark)').matches").await, true);
    assert!(browser.screenshot().await.starts_with(b"\x89PNG"));
    assert_eq!(browser.violations().await, [""; 0]);
    assert_eq!((browser.layout_shift().await, browser.has_dialog().await), (0.0, false));
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn what_a_page_must_not_do_is_noticed() {
    let site = site();
    let browser = Browser::start(&site.origin()).await;
    browser.open("/wrong").await;
    let violations = browser.violations().await;
    assert!(violations.iter().any(|one| one.starts_with("label: <input>")), "{violations:?}");
    assert!(browser.requests().await.contains(&"http://localhost:9/other.png".to_owned()));
    browser.until("return seen.shift > 0").await;
    browser.open("/strict").await;
    assert_eq!(browser.text("h1").await.as_deref(), Some("Strict"));
    assert_eq!(browser.refused().await, ["script-src-elem inline"]);
    assert!(browser.errors().await.iter().any(|error| error.contains("Content Security Policy")));
    browser.eval("setTimeout(() => alert('dialog'))").await;
    until(async || browser.has_dialog().await).await;
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn a_dropped_browser_leaves_no_process() {
    let site = site();
    let browser = Browser::start(&site.origin()).await;
    let group = browser.group();
    assert!(processes(group).len() > 2);
    drop(browser);
    until(async || processes(group).is_empty()).await;
}
