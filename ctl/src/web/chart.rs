//! Charts of the last hour, as SVG. Lines differ by their dashes as well as by their colours.

use crate::board::{latency::Times, Sample};
use crate::text::{exact, span};
use maud::{html, Markup};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 64.0;
/// A chart shows at least this time, so that it does not jump while its history is short, in ms.
const LEAST: i64 = 120_000;
/// Samples that are further apart are not joined by a line, in ms.
const GAP: i64 = 60_000;
/// The distances between the ticks of the time, in ms, and the most ticks.
const STEPS: [i64; 7] = [30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_200_000];
const TICKS: i64 = 4;

/// Values at instants in Unix ms; `None` interrupts the line.
type Points = Vec<(i64, Option<f64>)>;

/// A line: its name, its class, and its values.
struct Series {
    name: &'static str,
    kind: &'static str,
    points: Points,
}

/// What the axis of values shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    Number,
    /// Logarithmic, so that one value of a minute does not flatten the others.
    Time,
}

/// The samples of the history; `None` where a server could not be read.
type Samples = [(i64, Option<Sample>)];

/// A line for each name; `value` is its value by its number, from a sample and the one before.
fn series(
    samples: &Samples,
    names: &[(&'static str, &'static str)],
    value: impl Fn(usize, &Sample, Option<&Sample>) -> Option<f64>,
) -> Vec<Series> {
    let line = |(place, (name, kind)): (usize, &(&'static str, &'static str))| {
        let before = std::iter::once(None).chain(samples.iter().map(|(_, sample)| sample.as_ref()));
        let points = samples.iter().zip(before);
        let point = |((at, now), before): (&(i64, Option<Sample>), _)| {
            (*at, now.as_ref().and_then(|now| value(place, now, before)))
        };
        Series { name, kind, points: points.map(point).collect() }
    };
    names.iter().enumerate().map(line).collect()
}

/// The depth of the queues.
pub fn depths(samples: &Samples) -> Markup {
    let names = [("Ready", "ready"), ("Delayed", "delayed"), ("In flight", "inflight"), ("Dead", "dead")];
    let series = series(samples, &names, |place, now, _| now.counts.get(place).copied().map(float));
    chart("Messages", &series, Axis::Number)
}

/// Messages a second. A total that fell was reset, so the rate is not known then.
pub fn flows(samples: &Samples) -> Markup {
    let names = [("In", "pushed"), ("Delivered", "delivered"), ("Out", "completed")];
    let series = series(samples, &names, |place, now, before| {
        let more = now.totals.get(place)? - before?.totals.get(place)?;
        Some(float(more) * 1_000.0 / float(now.at - before?.at)).filter(|rate| *rate >= 0.0)
    });
    chart("Messages per second", &series, Axis::Number)
}

/// The median and the 99th percentile.
pub fn times(title: &str, samples: &Samples, of: fn(Times) -> Option<[u64; 2]>) -> Markup {
    let mut series = series(samples, &[("median", "ready"), ("99 %", "inflight")], |place, now, _| {
        of(now.times)?.get(place).map(|ms| float(i64::try_from(*ms).unwrap_or(i64::MAX)))
    });
    series.iter_mut().for_each(|one| one.points.retain(|(_, value)| value.is_some()));
    chart(title, &series, Axis::Time)
}

/// A line in a row of a table.
pub fn sparkline(depths: &[(i64, i64)]) -> Markup {
    let points: Points = depths.iter().rev().map(|(at, depth)| (*at, Some(float(*depth)))).collect();
    let top = highest(points.iter());
    let (first, last) = bounds(points.iter());
    html! {
        @if points.len() > 1 && top > 0.0 {
            @let area = format!("0 0 {WIDTH} {HEIGHT}");
            svg.spark viewBox=(area) preserveAspectRatio="none" role="img" aria-label={ "at most " (top) } {
                path class="line depth" d=(path(&points, first, last, |value| value / top)) {}
            }
        }
    }
}

fn chart(title: &str, series: &[Series], axis: Axis) -> Markup {
    let top = highest(series.iter().flat_map(|one| &one.points));
    let (first, last) = bounds(series.iter().flat_map(|one| &one.points));
    let top = if axis == Axis::Time { top.max(10.0) } else { nice(top) };
    let place = |value: f64| match axis {
        Axis::Number => value / top,
        Axis::Time => value.max(1.0).ln() / top.ln(),
    };
    let label = |value: f64| match axis {
        Axis::Number if value < 10.0 && value.fract() > 0.05 => format!("{value:.1}"),
        Axis::Number => crate::text::separated(format!("{value:.0}")),
        Axis::Time => format!("≤{}", exact(whole(value))),
    };
    let step = STEPS.into_iter().find(|step| (last - first) / step <= TICKS).unwrap_or(1_200_000);
    let ticks: Vec<(f64, i64)> = (1..=TICKS)
        .map(|tick| tick * step)
        .filter(|ago| *ago < last - first)
        .map(|ago| (share(last - ago, first, last), ago))
        .collect();
    html! {
        figure.chart {
            figcaption { (title) }
            ul.legend {
                @for one in series {
                    li {
                        svg.swatch viewBox="0 0 18 8" aria-hidden="true" {
                            path class={ "line " (one.kind) } d="M0 4H18" {}
                        }
                        (one.name) " "
                        b { (one.points.last().and_then(|(_, value)| *value).map_or_else(|| "–".to_owned(), label)) }
                    }
                }
            }
            svg.plot role="img" aria-label={ (title) " over the last " (span(last.abs_diff(first))) } {
                svg width="100%" height="64" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" {
                    @for (at, _) in &ticks { path.grid d={ "M" (at * WIDTH) " 0V" (HEIGHT) } {} }
                    path.grid d={ "M0 " (HEIGHT - 0.5) "H" (WIDTH) "M0 0.5H" (WIDTH) } {}
                    @for one in series {
                        path class={ "line " (one.kind) } d=(path(&one.points, first, last, place)) {}
                    }
                }
                text x="2" y="11" { (label(top)) }
                @for (at, ago) in &ticks { text x={ (at * 100.0) "%" } y="78" text-anchor="middle" { (minutes(*ago)) } }
                text x="100%" y="78" text-anchor="end" { "now" }
            }
        }
    }
}

/// `2 min`, or `30 s`.
fn minutes(ms: i64) -> String {
    if ms % 60_000 == 0 {
        format!("{} min", ms / 60_000)
    } else {
        format!("{} s", ms / 1_000)
    }
}

fn path(points: &[(i64, Option<f64>)], first: i64, last: i64, place: impl Fn(f64) -> f64) -> String {
    let (mut path, mut before): (String, Option<i64>) = (String::new(), None);
    for (at, value) in points {
        let Some(value) = value else {
            before = None;
            continue;
        };
        let joined = before.is_some_and(|before| at - before < GAP);
        let (x, y) = (share(*at, first, last) * WIDTH, HEIGHT - 1.0 - place(*value).clamp(0.0, 1.0) * (HEIGHT - 2.0));
        path.push_str(&format!("{}{x:.1} {y:.1}", if joined { 'L' } else { 'M' }));
        // A point that stands alone is seen as well.
        path.push_str(if joined { "" } else { "h.1" });
        before = Some(*at);
    }
    path
}

fn share(at: i64, first: i64, last: i64) -> f64 {
    float(at - first) / float((last - first).max(1))
}

fn highest<'a>(points: impl Iterator<Item = &'a (i64, Option<f64>)>) -> f64 {
    points.filter_map(|(_, value)| *value).fold(0.0, f64::max)
}

fn bounds<'a>(points: impl Iterator<Item = &'a (i64, Option<f64>)>) -> (i64, i64) {
    let instants: Vec<i64> = points.map(|(at, _)| *at).collect();
    let last = instants.iter().copied().max().unwrap_or(0);
    (instants.iter().copied().min().unwrap_or(0).min(last - LEAST), last)
}

/// The next number that begins with 1, 2 or 5.
fn nice(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= value).unwrap_or(value)
}

fn float(number: i64) -> f64 {
    number as f64
}

fn whole(ms: f64) -> u64 {
    ms.max(0.0) as u64
}
