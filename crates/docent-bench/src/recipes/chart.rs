use super::ratio::Ratio;
use super::report::Report;
use super::target::Target;
use super::workload::Row;
use std::fmt::Write;

/// Bar chart of the ratios of Docent's figures to Curator's, for one kind of figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chart {
    /// More is better.
    Rates,
    /// Less is better.
    Times,
}

const WIDTH: f64 = 880.0;
/// Horizontal position where titles end and bars begin.
const LEFT: f64 = 390.0;
/// Horizontal position where bars end and their figures begin.
const RIGHT: f64 = 740.0;
const TOP: f64 = 84.0;
const STEP: f64 = 30.0;

/// One bar.
struct Bar<'a> {
    title: &'a str,
    ratio: Ratio,
    target: Option<f64>,
}

impl Chart {
    pub(super) const ALL: [Self; 2] = [Self::Rates, Self::Times];

    pub(super) fn file_name(self) -> &'static str {
        match self {
            Self::Rates => "recipes-rates.svg",
            Self::Times => "recipes-times.svg",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Rates => "Operations a second, Docent : Curator (more is better)",
            Self::Times => "Time and CPU, Docent : Curator (less is better)",
        }
    }

    fn shows(self, row: &Row) -> bool {
        match self {
            Self::Rates => row.key == "rate",
            Self::Times => row.key.ends_with("p50") || row.key == "cpu",
        }
    }

    /// Returns the chart as SVG, readable on light and dark pages.
    pub(super) fn drawn(self, report: &Report<'_>) -> String {
        let mut bars = Vec::new();
        for workload in report.workloads {
            for row in workload.rows.iter().filter(|row| self.shows(row)) {
                let title = if row.key == "cpu" { workload.rows[0].title } else { row.title };
                let title = if row.key == "cpu" { format!("CPU: {title}") } else { title.to_owned() };
                if let Some(ratio) = report.results.compared(workload, row.key).ratio {
                    bars.push((title.replace(", 1/s", "").replace(" µs", ""), ratio, row.target));
                }
            }
        }
        let bars: Vec<_> = bars
            .iter()
            .map(|(title, ratio, target)| Bar { title, ratio: *ratio, target: target.and_then(bound) })
            .collect();
        drawn(self.title(), &report.taken, &bars)
    }
}

fn bound(target: Target) -> Option<f64> {
    match target {
        Target::AtLeast(bound) | Target::AtMost(bound) => Some(bound),
        Target::Absolute(_) => None,
    }
}

/// Position of a ratio on a logarithmic scale: 2 is as far to the right as 0.5 is to the left.
#[derive(Debug, Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Returns a scale that contains all bars, their targets, and 1.
    fn of(bars: &[Bar<'_>]) -> Self {
        let shown = bars.iter().flat_map(|bar| [bar.ratio.min, bar.ratio.max].into_iter().chain(bar.target));
        let (low, high) = shown.fold((1.0_f64, 1.0_f64), |(low, high), one| (low.min(one), high.max(one)));
        Self { low: (low * 0.9).log2(), high: (high * 1.1).log2() }
    }

    fn x(self, ratio: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (ratio.log2() - self.low) / (self.high - self.low)
    }
}

fn drawn(title: &str, taken: &str, bars: &[Bar<'_>]) -> String {
    let (scale, bottom) = (Scale::of(bars), TOP + STEP * bars.len() as f64);
    let (one, height) = (scale.x(1.0), bottom + 54.0);
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}"
     font-family="Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif" font-size="14">
  <rect x="1" y="1" width="{}" height="{}" rx="10" fill="#ffffff" stroke="#d0d7de" stroke-width="2"/>
  <text x="24" y="36" font-size="17" font-weight="bold" fill="#1f2328">{title}</text>
  <text x="{one:.1}" y="66" text-anchor="middle" fill="#57606a">as Curator</text>
"##,
        WIDTH - 2.0,
        height - 2.0,
    );
    for (index, bar) in bars.iter().enumerate() {
        draw(&mut svg, bar, scale, TOP + STEP * index as f64);
    }
    // Writing to a string cannot fail.
    let _ = write!(
        svg,
        r##"  <path d="M{one:.1} 74 V{bottom:.1}" stroke="#57606a"/>
  <text x="24" y="{:.1}" font-size="11" fill="#57606a">{}. Lines: smallest to largest of the rounds; dashes: targets.</text>
</svg>
"##,
        bottom + 30.0,
        escaped(taken),
    );
    svg
}

fn draw(svg: &mut String, bar: &Bar<'_>, scale: Scale, y: f64) {
    let (from, to) = (scale.x(1.0_f64.min(bar.ratio.median)), scale.x(1.0_f64.max(bar.ratio.median)));
    let (min, max, middle, text) = (scale.x(bar.ratio.min), scale.x(bar.ratio.max), y + 11.0, y + 16.0);
    let (end, label) = (LEFT - 12.0, RIGHT + 16.0);
    // Writing to a string cannot fail.
    let _ = write!(
        svg,
        r##"  <text x="{end}" y="{text}" text-anchor="end" fill="#1f2328">{}</text>
  <rect x="{from:.1}" y="{y}" width="{:.1}" height="22" rx="2" fill="#54aeff"/>
  <path d="M{min:.1} {middle} H{max:.1}" stroke="#0550ae" stroke-width="2"/>
  <text x="{label}" y="{text}" fill="#1f2328">{:.2} ×</text>
"##,
        escaped(bar.title),
        to - from,
        bar.ratio.median,
    );
    if let Some(target) = bar.target {
        let (x, top, bottom) = (scale.x(target), y - 2.0, y + 24.0);
        let _ = writeln!(
            svg,
            r##"  <path d="M{x:.1} {top} V{bottom}" stroke="#1f2328" stroke-width="2" stroke-dasharray="4 3"/>"##
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(title: &str, ratios: [f64; 3], target: Option<f64>) -> Bar<'_> {
        Bar { title, ratio: Ratio::of(ratios).unwrap(), target }
    }

    #[test]
    fn twice_is_as_far_from_one_as_half() {
        let scale = Scale { low: -2.0, high: 2.0 };
        let (half, one, twice) = (scale.x(0.5), scale.x(1.0), scale.x(2.0));
        assert!((twice - one - (one - half)).abs() < 1e-9);
    }

    #[test]
    fn bars_lie_between_one_and_their_ratio() {
        let bars = [bar("a & b", [2.0, 1.9, 2.1], Some(1.7)), bar("c", [0.5, 0.4, 0.6], None)];
        let svg = drawn("Rates", "2026-11-23, a machine", &bars);
        assert!(svg.contains("a &amp; b") && svg.contains(">2.00 ×<") && svg.contains(">0.50 ×<"), "{svg}");
        assert_eq!(svg.matches("stroke-dasharray").count(), 1);
        assert!(svg.contains("2026-11-23, a machine"));
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    }

    #[test]
    fn a_chart_without_bars_is_valid() {
        assert!(drawn("Rates", "today", &[]).ends_with("</svg>\n"));
    }
}
