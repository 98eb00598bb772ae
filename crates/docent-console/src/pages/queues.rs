use super::draw::{Drawn, List, Part, Rows};
use super::filter::Filter;
use super::html::{Pen, row_id};
use super::lists::{address, found, parts};
use super::view::ListPage;
use crate::world::{Sample, World};
use docent::inspect::{Queue, Recipe, Report};
use maud::{Markup, html};

/// Width and height of a chart, in units of its own.
const SIZE: (f64, f64) = (120.0, 24.0);

/// Draws the list of queues.
pub(super) fn draw(world: &World, filter: &Filter, pen: &Pen<'_>) -> Drawn {
    let page = ListPage::Queues;
    let found = found(world, page, filter, pen);
    let rows = Rows::Table(&["Path", "Items", "In work", "Head since", "Dead letters", "Depth"]);
    let list =
        List::new(rows, &found, filter.from, address(page, filter), |_, report| row(world, report, pen));
    Drawn { title: page.title().to_owned(), parts: parts(page, filter, found.len(), Part::List(list), pen) }
}

fn row(world: &World, report: &Report, pen: &Pen<'_>) -> (String, Markup) {
    let id = row_id(&report.path);
    let cells = match &report.recipe {
        Recipe::Queue(queue) => cells(queue, &world.samples(&report.path), pen),
        _ => html! {},
    };
    (id.clone(), html! { tr id=(id) { th scope="row" { (pen.path(&report.path)) } (cells) } })
}

fn cells(queue: &Queue, samples: &[Sample], pen: &Pen<'_>) -> Markup {
    let number =
        |count: Option<usize>| count.map_or_else(|| "\u{2013}".to_owned(), |count| count.to_string());
    html! {
        td data-label="Items" { (queue.depth) @if queue.delayed > 0 { " (" (queue.delayed) " delayed)" } }
        td data-label="In work" { (number(queue.claimed)) }
        td data-label="Head since" { (pen.since(queue.head.as_ref().and_then(|head| head.since))) }
        td data-label="Dead letters" { @match queue.dead { Some(dead) if dead > 0 => span.badge.is-dead { (dead) }, dead => (number(dead)) } }
        td data-label="Depth" { (spark("depth", "Depth", &samples.iter().map(|one| one.depth as f64).collect::<Vec<_>>(), "")) }
    }
}

/// Charts of the last ten minutes: depth, items that left minus items that came, and the age of the head.
pub(super) fn charts(samples: &[Sample]) -> Markup {
    let depth: Vec<_> = samples.iter().map(|one| one.depth as f64).collect();
    let rate: Vec<_> = depth.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let age: Vec<_> = samples.iter().map(|one| one.head_seconds).collect();
    html! {
        section #charts .block {
            h2 { "Last ten minutes" }
            @for (class, title, values, unit) in
                [("depth", "Depth", &depth, ""), ("rate", "Growth in 5 s", &rate, ""), ("age", "Age of the head", &age, "s")]
            {
                figure.chart {
                    figcaption { (title) ": " @match values.last() { Some(last) => { (format!("{last:.0}{unit}")) }, None => "\u{2013}" } }
                    (spark(class, title, values, unit))
                }
            }
        }
    }
}

/// A line through the values, from the lowest to the highest.
fn spark(class: &str, title: &str, values: &[f64], unit: &str) -> Markup {
    let (lowest, highest) =
        values.iter().fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    let last = values.last().copied().unwrap_or_default();
    let (width, height) = SIZE;
    let step = width / (values.len().max(2) - 1) as f64;
    let range = if highest > lowest { highest - lowest } else { 1.0 };
    let point = |(index, value): (usize, &f64)| {
        format!("{:.1},{:.1}", index as f64 * step, height - (value - lowest) / range * height)
    };
    let points: Vec<_> = values.iter().enumerate().map(point).collect();
    let label = format!("{title}: now {last:.0}{unit}, lowest {lowest:.0}{unit}, highest {highest:.0}{unit}");
    html! {
        svg.spark role="img" aria-label=(label) viewBox=(format!("0 0 {width} {height}")) preserveAspectRatio="none" {
            polyline class=(class) points=(points.join(" ")) {}
        }
    }
}
