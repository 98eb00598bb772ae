//! Every page in each look: light, dark, and on a phone.

use crate::browser::{Browser, LIGHT, LOOKS, PHONE};
use crate::pages::PAGES;
use crate::site::Site;
use crate::world::{Shop, watcher};
use docent_battery::Backend;
use docent_console::Access;

/// Pages besides those of the navigation.
const DETAILS: [&str; 9] = [
    "/at/shop/report",
    "/at/shop/leader",
    "/at/services",
    "/at/services/orders",
    "/at/shop/jobs",
    "/at/shop/limits",
    "/at/shop/workers",
    "/nodes?path=/shop",
    "/no/such/page",
];

/// Links on those pages that lead to further kinds of pages.
const LINKS: [(&str, &str); 3] = [
    ("/at/shop/report", "a.action[href*='do=delete']"),
    ("/at/shop/jobs", "#rows a.data"),
    ("/at/shop/limits", ".versions a"),
];

/// Opens every kind of page, one after the other.
pub(crate) async fn visit(browser: &Browser, mut see: impl AsyncFnMut(&str)) {
    for page in PAGES.map(|(path, _)| path).iter().chain(&DETAILS) {
        browser.open(page).await;
        browser.until_live().await;
        see(page).await;
    }
    for (page, link) in LINKS {
        browser.open(page).await;
        browser.until_live().await;
        let target = browser
            .eval_with("return document.querySelector(arguments[0])?.getAttribute('href')", &[link.into()])
            .await;
        browser.open(target.as_str().unwrap_or_else(|| panic!("{page} has no {link}"))).await;
        see(link).await;
    }
}

async fn check(browser: &Browser, page: &str, faults: &mut Vec<String>) {
    for look in LOOKS {
        browser.look(look).await;
        // The window is drawn in its new size and colours, into which some elements fade.
        let drawn = "requestAnimationFrame(() => requestAnimationFrame(() =>
            Promise.allSettled(document.getAnimations().map(fading => fading.finished)).then(() => arguments[0]())))";
        browser.eval_async(drawn, &[]).await;
        let found = browser.violations().await;
        faults.extend(found.into_iter().map(|fault| format!("{page}, {}: {fault}", look.name)));
        let width = browser.eval("return document.documentElement.scrollWidth - innerWidth").await;
        if width.as_f64().unwrap() > 0.0 {
            faults.push(format!("{page}, {}: wider than the window by {width}", look.name));
        }
    }
    browser.look(LIGHT).await;
}

#[tokio::test]
#[ignore = "needs Chromium and downloads packages: run `cargo xtask test`"]
async fn no_page_has_a_serious_violation_in_any_look() {
    let server = Backend::Embedded.start().await;
    let shop = Shop::open(&server).await;
    let site = Site::console(&shop.console, docent_console::ConsoleBuilder::allow_actions);
    let browser = Browser::start(&site.origin()).await;
    let mut faults = Vec::new();
    visit(&browser, async |page: &str| check(&browser, page, &mut faults).await).await;
    browser.open("/locks").await;
    browser.until_live().await;
    browser.press("?").await;
    browser.until("return document.querySelector('dialog#keys').open").await;
    check(&browser, "dialog", &mut faults).await;
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test]
#[ignore = "needs Chromium and downloads packages: run `cargo xtask test`"]
async fn a_stale_view_and_the_page_to_sign_in_have_no_serious_violation() {
    let server = Backend::Embedded.start_own().await;
    let shop = Shop::open(&server).await;
    let site = Site::console(&shop.console, |builder| builder);
    let mut faults = Vec::new();
    {
        let browser = Browser::start(&site.origin()).await;
        browser.open("/locks").await;
        browser.until_live().await;
        server.stop().await;
        browser.until("return document.documentElement.classList.contains('is-stale')").await;
        check(&browser, "stale", &mut faults).await;
        server.start_again().await;
    }
    let client = watcher(&server).await;
    let access = Access::token("correct-horse-battery-staple".to_owned()).unwrap();
    let site = Site::console(&client, |builder| builder.access(access));
    let browser = Browser::start(&site.origin()).await;
    browser.open("/locks").await;
    check(&browser, "sign-in", &mut faults).await;
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn a_phone_shows_each_value_with_its_name() {
    let server = Backend::Embedded.start().await;
    let shop = Shop::open(&server).await;
    let site = Site::console(&shop.console, |builder| builder);
    let browser = Browser::start(&site.origin()).await;
    browser.look(PHONE).await;
    let script = "return [...document.querySelectorAll(':is(#rows, #ensemble) td')].filter(cell => {
            const name = getComputedStyle(cell, '::before').content;
            const box = cell.getBoundingClientRect();
            const isCut = cell.querySelector('svg') && cell.scrollWidth > cell.clientWidth;
            return cell.innerHTML && (!name.includes(cell.dataset.label) || box.right > innerWidth || isCut);
        }).map(cell => cell.outerHTML)";
    for (page, row) in
        [("/locks", "/shop/report"), ("/queues", "/shop/jobs"), ("/services", "/services/orders")]
    {
        browser.open(page).await;
        browser.until_row(row, &[]).await;
        assert_eq!(browser.eval(script).await, serde_json::json!([]));
    }
    browser.open("/").await;
    browser.until_text("#ensemble", |text| text.contains("standalone")).await;
    assert_eq!(browser.eval(script).await, serde_json::json!([]));
}
