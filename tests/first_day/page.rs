//! The loops of the service are those of the page.

const SERVICE: &str = include_str!("service.rs");
const PAGE: &str = include_str!("../../docs/guide/errors.md");

/// Returns the text of a function, with durations left out.
fn function<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let start = text.find(&format!("fn {name}(")).unwrap_or_else(|| panic!("{name} is missing"));
    let end = text[start..].find("\n}\n").unwrap();
    text[start..start + end].lines().map(|line| line.split("Duration::").next().unwrap()).collect()
}

#[test]
fn the_loops_of_the_service_are_those_of_the_page() {
    for name in ["report_every_minute", "work_off", "register"] {
        assert_eq!(function(SERVICE, name), function(PAGE, name), "{name}");
    }
    let election = ".retry_failures().until(stop).await\n";
    assert!(SERVICE.contains(election) && PAGE.contains(election));
}
