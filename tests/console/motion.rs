//! Animations and transitions, which users can ask to omit.

use crate::browser::{Browser, CALM, LIGHT};
use crate::looks::visit;
use crate::site::Site;
use crate::world::Shop;
use docent_battery::Backend;

/// Elements that the stylesheet animates, with their durations.
const MOVING: &str = "return [...document.querySelectorAll('*')].flatMap(element => {
        const styles = [null, '::before', '::after', '::backdrop'].map(part => getComputedStyle(element, part));
        const durations = styles.flatMap(style => [style.animationDuration, style.transitionDuration]);
        const isMoving = durations.some(list => list.split(', ').some(duration => parseFloat(duration) > 0));
        return isMoving || getComputedStyle(element).scrollBehavior === 'smooth' ?
            [element.outerHTML.slice(0, 200)] : [];
    })";

/// Counts the animations that scripts start.
const COUNT: &str = "const animate = Element.prototype.animate;
    window.animated = 0;
    Element.prototype.animate = function (...all) {
        window.animated += 1;
        return animate.apply(this, all);
    }";

/// Returns the elements of the current page that move.
async fn moving(browser: &Browser) -> Vec<String> {
    serde_json::from_value(browser.eval(MOVING).await).unwrap()
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn nothing_moves_for_users_who_ask_for_less_motion() {
    let server = Backend::Embedded.start().await;
    let shop = Shop::open(&server).await;
    let site = Site::console(&shop.console, docent_console::ConsoleBuilder::allow_actions);
    let browser = Browser::start(&site.origin()).await;
    let (mut calm, mut usual) = (Vec::new(), Vec::new());
    visit(&browser, async |page: &str| {
        browser.look(CALM).await;
        calm.extend(moving(&browser).await.into_iter().map(|element| format!("{page}: {element}")));
        browser.look(LIGHT).await;
        usual.extend(moving(&browser).await);
    })
    .await;
    assert_eq!(calm, [""; 0]);
    assert!(!usual.is_empty(), "without the request, buttons and links have transitions");
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn new_rows_are_highlighted_unless_users_ask_for_less_motion() {
    let server = Backend::Embedded.start().await;
    let shop = Shop::open(&server).await;
    let site = Site::console(&shop.console, |builder| builder);
    let browser = Browser::start(&site.origin()).await;
    for (look, [first, second], is_animated) in [(LIGHT, ["m", "n"], true), (CALM, ["o", "p"], false)] {
        browser.look(look).await;
        browser.open("/at/services/orders").await;
        // The first patch of a stream is not new to the user.
        shop.add_instance(first).await;
        browser.until_row(first, &[]).await;
        browser.eval(COUNT).await;
        shop.add_instance(second).await;
        browser.until_row(second, &[]).await;
        assert_eq!(browser.eval("return animated > 0").await, is_animated, "{}", look.name);
    }
}
