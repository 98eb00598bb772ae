//! Payloads, which are shown when they are requested, or never.

use crate::browser::Browser;
use crate::pages::PAGES;
use crate::site::Site;
use crate::world::Shop;
use docent_battery::Backend;
use docent_console::ConsoleBuilder;
use std::collections::BTreeSet;

/// What only the data of nodes has.
const PAYLOADS: [&str; 4] = ["broken job", "no such customer", "zone-a", "burst"];

/// Opens all pages that links lead to, and returns their addresses and texts.
async fn crawl(browser: &Browser) -> (BTreeSet<String>, String) {
    let mut pages: Vec<String> = PAGES.iter().map(|(path, _)| (*path).to_owned()).collect();
    let (mut known, mut text): (BTreeSet<_>, _) = (pages.iter().cloned().collect(), String::new());
    while let Some(page) = pages.pop() {
        browser.open(&page).await;
        browser.until_live().await;
        text += &browser.text("body").await.unwrap();
        pages.extend(browser.links().await.into_iter().filter(|link| known.insert(link.clone())));
    }
    (known, text)
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn payloads_are_reached_by_links_and_never_shown_if_they_are_hidden() {
    let server = Backend::Embedded.start().await;
    let shop = Shop::open(&server).await;
    let showing = Site::console(&shop.console, ConsoleBuilder::allow_actions);
    let hiding = Site::console(&shop.console, |builder| builder.allow_actions().hide_data());
    let browser = Browser::start(&showing.origin()).await;
    let (pages, text) = crawl(&browser).await;
    let missing: Vec<_> = PAYLOADS.iter().filter(|payload| !text.contains(**payload)).collect();
    assert!(missing.is_empty(), "{missing:?} are on none of {pages:#?}");
    drop(browser);

    let browser = Browser::start(&hiding.origin()).await;
    let (_, text) = crawl(&browser).await;
    let shown: Vec<_> = PAYLOADS.iter().filter(|payload| text.contains(**payload)).collect();
    assert!(shown.is_empty(), "{shown:?} are shown");
    for page in pages.iter().filter(|page| page.starts_with("/data") || page.starts_with("/diff")) {
        browser.open(page).await;
        assert_eq!(browser.status().await, 403, "{page}");
    }
    for path in ["/api/v1/recipes", "/api/v1/at/services/orders", "/api/v1/at/shop/jobs", "/metrics"] {
        browser.open(path).await;
        let text = browser.text("body").await.unwrap();
        let shown: Vec<_> = PAYLOADS.iter().filter(|payload| text.contains(**payload)).collect();
        assert!(shown.is_empty(), "{shown:?} are shown at {path}");
    }
}
