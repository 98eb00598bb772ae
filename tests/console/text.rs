//! Names, payloads and identities that would be script.

use crate::browser::Browser;
use crate::hostile;
use crate::site::Site;
use crate::world::Shop;
use docent_battery::{Backend, both_backends_with_packages};
use std::collections::BTreeSet;

/// Elements that only the texts of services could have created.
const INJECTED: &str = "return [...document.querySelectorAll(
        `main :is(img, script, iframe, object, b), svg:not(.spark), :is([onerror], [onload], [onclick]),
        a[href^='javascript:' i]`)]
    .map(element => element.outerHTML)";

/// Characters that change how the text around them is shown.
const CONTROLS: &str = "const controls = /[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]/;
    return controls.exec(document.body.innerText)?.[0].codePointAt(0) ?? null";

async fn is_text(browser: &Browser, page: &str) {
    assert!(!browser.has_dialog().await, "{page}");
    assert_eq!(browser.eval(INJECTED).await, serde_json::json!([]), "{page}");
    assert_eq!(browser.eval(CONTROLS).await, serde_json::Value::Null, "{page}");
    assert_eq!(browser.refused().await, [""; 0], "{page}");
}

both_backends_with_packages! {
    async fn script_in_names_payloads_and_identities_stays_text(backend: Backend) {
        let server = backend.start().await;
        let mut shop = Shop::open(&server).await;
        shop.add_hostile(&server).await;
        let site = Site::console(&shop.console, docent_console::ConsoleBuilder::allow_actions);
        let browser = Browser::start(&site.origin()).await;
        let mut pages: Vec<String> =
            crate::pages::PAGES.iter().map(|(path, _)| (*path).to_owned()).collect();
        let mut known: BTreeSet<String> = pages.iter().cloned().collect();
        let mut seen = String::new();
        while let Some(page) = pages.pop() {
            browser.open(&page).await;
            browser.until_live().await;
            is_text(&browser, &page).await;
            seen += &browser.text("body").await.unwrap();
            pages.extend(browser.links().await.into_iter().filter(|link| known.insert(link.clone())));
        }
        for text in [
            "<img src=x onerror=alert(1)>",
            "<b onclick=alert(3)>10.0.0.9</b>",
            "<script>alert(4)</script>",
            "<svg onload=alert(6)>",
            "javascript:alert(8)//",
        ] {
            assert!(seen.contains(text), "{text} is on none of {known:#?}");
        }
        assert_eq!(browser.errors().await.iter().filter(|error| error.contains("Content Security")).count(), 0);
    }

    async fn script_that_arrives_on_an_open_page_stays_text(backend: Backend) {
        let server = backend.start().await;
        let mut shop = Shop::open(&server).await;
        let site = Site::console(&shop.console, |builder| builder);
        let browser = Browser::start(&site.origin()).await;
        browser.open("/tree").await;
        browser.until_row("/shop/report", &[]).await;
        shop.add_hostile(&server).await;
        browser.until_texts("#rows a.path", |paths| {
            let hostile: Vec<_> = paths.iter().filter(|path| path.contains("onerror=alert(1)")).collect();
            let is_there = |end: &&str| hostile.iter().any(|path| path.ends_with(*end));
            ["/lock", "/leader", "/jobs", "/limits", "/workers"].iter().all(is_there)
        })
        .await;
        is_text(&browser, "/tree").await;
        assert!(!hostile::NAME.contains('/'));
        browser.click("#rows a.path[href*='onerror'][href$='/lock']").await;
        browser.until_texts(".contender .owner", |owners| owners.len() == 2).await;
        is_text(&browser, "lock").await;
    }
}
