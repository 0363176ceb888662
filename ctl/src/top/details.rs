//! The page with the details of a queue: what `dqctl info` and `dqctl stats` print.

use super::app::App;
use super::message::{pairs, scrolled};
use crate::daily::queues::value;
use crate::latency::{Histogram, TOLD};
use crate::output::text::{named_in, Line, Style};
use crate::output::Output;
use crate::reply::Fields;
use crate::time::exact;

const SETTINGS: &str = "settings";
/// The first field of each part of `DQ.INFO`, and what the part is called.
const PARTS: [(&str, &str); 2] = [("lease", SETTINGS), ("pushed", "totals")];

#[derive(Default)]
pub struct DetailsPage {
    /// Names and values; `None`: they have not been read yet. A part begins with an empty line and its name.
    pub lines: Option<Vec<(String, String)>>,
    pub scroll: usize,
}

/// The fields of `DQ.INFO` and the percentiles of `DQ.STATS`.
pub fn details(info: &Fields, stats: &Fields) -> Vec<(String, String)> {
    let output = Output::new(false);
    let part = |name: &str| [String::new(), name.to_owned()].map(|name| (name, String::new()));
    let (mut lines, mut is_setting) = (Vec::new(), false);
    for (field, _) in &info.0 {
        if let Some((_, name)) = PARTS.iter().find(|(first, _)| first == field) {
            lines.extend(part(name));
            is_setting = *name == SETTINGS;
        }
        let value = value(info, field, &output);
        // What there is none of would fill a screen.
        if !value.is_empty() && (is_setting || value != "0") {
            lines.push((field.clone(), value));
        }
    }
    lines.extend(part("since the server started"));
    for name in ["lateness", "runtime"] {
        let told = TOLD.into_iter().zip(Histogram::read(stats, name).told());
        lines.extend(told.map(|(percent, bound)| {
            let bound = bound.and_then(|bound| u64::try_from(bound).ok());
            (format!("{name}-p{percent}"), bound.map_or_else(|| "-".to_owned(), |ms| format!("≤{}", exact(ms))))
        }));
    }
    lines
}

/// The settings with one of these in their names, or all settings if there is none.
fn chosen(lines: &[(String, String)], names: &[String]) -> Vec<(String, String)> {
    let settings =
        lines.iter().skip_while(|(name, _)| name != SETTINGS).skip(1).take_while(|(name, _)| !name.is_empty());
    let is_meant = |name: &str| names.is_empty() || names.iter().any(|typed| name.contains(typed));
    settings.filter(|(name, _)| is_meant(name)).cloned().collect()
}

pub fn details_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    let typed = app.typed_settings();
    let (Some(page), Some(queue)) = (&mut app.details, &app.queue) else { return Vec::new() };
    let mut title = Line::new(Style::Bold, named_in(width.saturating_sub(32).max(8), &queue.name));
    title.add(Style::Plain, "  settings, totals and percentiles");
    let lines = match (&page.lines, typed) {
        (None, _) => vec![Line::new(Style::Dim, "Reading …")],
        (Some(lines), Some(typed)) => match chosen(lines, &typed).as_slice() {
            [] => vec![Line::new(Style::Dim, "No setting has this in its name.")],
            chosen => pairs(chosen, width),
        },
        (Some(lines), None) => pairs(lines, width),
    };
    (app.lines, app.height) = (lines.len(), height);
    scrolled(title, lines, &mut page.scroll, height)
}
