//! The chart of recall against speed: a panel for each set of vectors, a line for each way.
//!
//! To the right is more recall, upwards more queries per second; the better line lies above the
//! other. Speed is on a logarithmic axis, and so is the recall that is missing: the step from 0.9
//! to 0.99 is as wide as that from 0.99 to 0.999, for it is as hard. SVG without scripts or fonts
//! of its own, which follows a light or dark page.

use std::fmt::Write as _;

use super::outcome::Way;
use crate::report::{STYLE, escape};

/// Points of one way, in order of effort: recall and queries per second.
pub(super) struct Line {
    pub(super) way: Way,
    pub(super) points: Vec<(f64, f64)>,
}

/// The lines of one set.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) lines: Vec<Line>,
}

// Measures of the chart, in its own units.
const WIDTH: f64 = 760.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 130.0;
const PANEL_HEIGHT: f64 = 300.0;
const TOP: f64 = 40.0;
const PLOT_HEIGHT: f64 = 220.0;

/// The most recall that the axis shows: a graph that misses nothing lies here.
const RECALL_MAX: f64 = 0.9999;

/// Recalls that a line on the axis may mark.
const RECALL_MARKS: [f64; 9] = [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999];

/// The whole chart, with `note` below.
pub(super) fn draw(note: &str, panels: &[Panel]) -> String {
    let height = PANEL_HEIGHT * panels.len() as f64 + 24.0;
    let label = "Queries per second against recall@10; higher is better";
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"{label}\">\n{STYLE}<style>\n\
         polyline {{ fill: none; stroke-width: 2 }} .grid {{ stroke: #8b949e; opacity: .35 }}\n\
         .line.kiln {{ stroke: #d9480f; fill: none }}\n\
         .line.redis {{ stroke: #868e96; fill: none }}\n\
         .dashed {{ stroke-dasharray: 5 4 }}\n</style>\n",
    );
    for (index, panel) in panels.iter().enumerate() {
        draw_panel(&mut svg, panel, PANEL_HEIGHT * index as f64);
    }
    text(&mut svg, 12.0, height - 8.0, "note", note);
    svg.push_str("</svg>\n");
    svg
}

fn draw_panel(svg: &mut String, panel: &Panel, top: f64) {
    text(svg, 12.0, top + 22.0, "title", &format!("{}: queries/s, one client", panel.title));
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    let (Some(left), Some(low), Some(high)) = (
        points().map(|point| missing(point.0)).reduce(f64::max),
        points().map(|point| point.1.log10()).reduce(f64::min),
        points().map(|point| point.1.log10()).reduce(f64::max),
    ) else {
        return;
    };
    let (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
    let right = missing(RECALL_MAX);
    let bottom = top + TOP + PLOT_HEIGHT;
    let x = |recall: f64| {
        LEFT + (RIGHT - LEFT) * (left - missing(recall)) / (left - right).max(f64::MIN_POSITIVE)
    };
    let y = |speed: f64| bottom - PLOT_HEIGHT * (speed.log10() - low) / (high - low);
    for mark in RECALL_MARKS.into_iter().filter(|mark| missing(*mark) <= left) {
        grid(svg, [x(mark), top + TOP, x(mark), bottom]);
        text(svg, x(mark) - 12.0, bottom + 16.0, "value", &mark.to_string());
    }
    text(svg, RIGHT - 60.0, bottom + 32.0, "note", "recall@10");
    for decade in low as i32..=high as i32 {
        let speed = 10_f64.powi(decade);
        grid(svg, [LEFT, y(speed), RIGHT, y(speed)]);
        text(svg, LEFT - 8.0, y(speed) + 4.0, "label", &format!("{speed:.0}"));
    }
    for line in &panel.lines {
        let path: Vec<String> = line
            .points
            .iter()
            .map(|(recall, speed)| format!("{:.1},{:.1}", x(*recall), y(*speed)))
            .collect();
        let dashed = line.way != Way::plain(line.way.kind, super::wire::Face::Set);
        let class = line.way.kind.name().to_lowercase();
        let dashed = if dashed { " dashed" } else { "" };
        let _ = writeln!(
            svg,
            "<polyline class=\"line {class}{dashed}\" points=\"{}\"/>",
            path.join(" ")
        );
        if let Some((recall, speed)) = line.points.last() {
            text(svg, x(*recall) + 6.0, y(*speed) + 4.0, "value", line.way.name());
        }
    }
}

/// The decimal logarithm of the recall that is missing.
fn missing(recall: f64) -> f64 {
    (1.0 - recall.min(RECALL_MAX)).log10()
}

fn grid(svg: &mut String, [x1, y1, x2, y2]: [f64; 4]) {
    let _ = writeln!(
        svg,
        "<line class=\"grid\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn text(svg: &mut String, x: f64, y: f64, class: &str, text: &str) {
    let _ =
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>", escape(text));
}
