//! Use by keyboard alone.

use crate::browser::Browser;
use crate::pages::PAGES;
use crate::site::Site;
use crate::world::Shop;
use docent_battery::Backend;

/// Text of the element with the focus.
async fn focused(browser: &Browser) -> String {
    let text = browser.eval("return document.activeElement.textContent.trim()").await;
    text.as_str().unwrap().to_owned()
}

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

async fn shop() -> (docent_battery::TestServer, Shop, Site, Browser) {
    let server = Backend::Embedded.start().await;
    let shop = Shop::open(&server).await;
    let site = Site::console(&shop.console, |builder| builder);
    let browser = Browser::start(&site.origin()).await;
    (server, shop, site, browser)
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn each_page_and_row_is_reached_with_keys() {
    let (_server, _shop, _site, browser) = shop().await;
    browser.open("/").await;
    for (key, (path, title)) in "olesqcmnt".chars().zip(PAGES) {
        browser.press(&format!("g{key}")).await;
        let script = format!(
            "return location.pathname === '{path}' && document.querySelector('h1')?.textContent === '{title}'"
        );
        browser.until(&script).await;
        // The script handles keys from then on.
        browser.until("return document.documentElement.classList.contains('has-script')").await;
    }
    browser.open("/locks").await;
    browser.until_row("/shop/report", &[]).await;
    for (key, path) in
        [("j", "/shop/licences"), ("j", "/shop/prices"), ("j", "/shop/report"), ("k", "/shop/prices")]
    {
        browser.press(key).await;
        assert_eq!(focused(&browser).await, path);
    }
    browser.press(ENTER).await;
    browser.until("return location.pathname === '/at/shop/prices'").await;
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn search_help_and_content_are_reached_with_keys() {
    let (_server, _shop, _site, browser) = shop().await;
    browser.open("/locks").await;
    browser.until_row("/shop/report", &[]).await;
    browser.press(TAB).await;
    assert_eq!(focused(&browser).await, "Skip to content");
    browser.press(ENTER).await;
    browser.until("return document.activeElement.id === 'main'").await;
    let outlined = "const style = getComputedStyle(document.activeElement);
        return style.outlineStyle !== 'none' || style.boxShadow !== 'none'";
    browser.press(TAB).await;
    assert_eq!(browser.eval(outlined).await, true);

    browser.press("?").await;
    // A letter that is typed in a field is no key.
    browser.eval("document.activeElement.blur()").await;
    if browser.eval("return document.querySelector('dialog#keys').open").await == false {
        browser.press("?").await;
    }
    browser.until("return document.querySelector('dialog#keys').open").await;
    browser.press(ESCAPE).await;
    browser.until("return !document.querySelector('dialog#keys').open").await;

    browser.press("/").await;
    browser.until("return document.activeElement.id === 'search'").await;
    browser.press("gl").await;
    assert_eq!(browser.eval("return document.activeElement.value").await, "gl");
    browser.press(&format!("\u{8}\u{8}/shop/jobs{ENTER}")).await;
    browser.until("return location.pathname === '/at/shop/jobs'").await;
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn the_focus_stays_on_its_row_while_rows_change() {
    let (_server, shop, _site, browser) = shop().await;
    browser.open("/locks").await;
    browser.until_row("/shop/report", &["2 waiting"]).await;
    browser.eval("document.querySelector(\"#rows a[href='/at/shop/report']\").focus()").await;
    docent_tests::soon(shop.report_lock.release()).await.unwrap();
    browser.until_row("/shop/report", &["reports", "1 waiting"]).await;
    assert_eq!(focused(&browser).await, "/shop/report");
}
