// Small charts of lines over time, as SVG. Lines differ by their dashes as well as by their colours.

import { el, svg, list, set, show, text } from "./dom.js";
import { clock, count, span } from "./format.js";

const WIDTH = 600;
const HEIGHT = 64;
/** A chart shows at least this time, so that it does not jump while its history is short. */
const LEAST = 120000;
/** Samples that are further apart are not joined by a line, in ms. */
const GAP = 60000;

/** The times that a logarithmic axis can end with, in ms. */
const TIMES = [100, 1000, 10000, 60000, 600000, 3600000, 36000000];

// The axis of values up to `highest`: those that have a line and a label, the highest first, and where a value is, from 0 to 1.

function linear(highest) {
  const top = nice(highest);
  return { labels: [top, top / 2], place: (value) => value / top };
}

/** For times, so that one that took a minute leaves the others to be seen. It has no zero: it begins with 1 ms. */
export function logarithmic(highest) {
  const top = TIMES.find((time) => time >= highest) ?? highest;
  const place = (value) => Math.log(Math.max(1, value)) / Math.log(top);
  return { labels: [top, nice(Math.sqrt(top)), 1], place };
}

/**
 * A chart with a title, and what it says if there is nothing to draw. `update` draws series of `{name, kind, points: [[at, value]]}`
 * with their last `value`. The value of a point may be null, or NaN, which interrupts the line. `told` is the form of a value
 * of a point, if it differs from that of the axis, which is `linear` or `logarithmic`. A slider over the lines, or a pointer, shows
 * the values of another time.
 */
export function chart(title, format, nothing, told = format, axis = linear) {
  const lines = svg("g");
  const grid = svg("path", { class: "grid" });
  const breaks = svg("path", { class: "break" });
  const cursor = svg("path", { class: "cursor" });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
    grid, breaks, cursor, lines);
  const scale = el("div", { class: "scale", "aria-hidden": "true" });
  const [from, middle, to] = [el("span"), el("span"), el("span")];
  const note = el("p", { class: "note" });
  const legend = el("ul", { class: "legend" });
  const slider = el("input", { type: "range", step: "10000", "aria-label": `${title}: time`, input: () => look(Number(slider.value)), blur: () => look(null), pointermove: follow, pointerleave: ({ pointerType }) => pointerType === "mouse" && look(null) });
  const plot = el("div", { class: "blank" }, el("div", { class: "plot" }, scale, picture, slider),
    el("div", { class: "times", "aria-hidden": "true" }, from, middle, to));
  // The note stands in place of the lines, so that what is below does not move when they appear.
  const node = el("figure", { class: "chart" }, el("figcaption", {}, title), legend, el("div", { class: "drawing" }, plot, note));
  let series = [];
  let [first, last] = [0, 0];
  /** The time that is looked at; null: now. */
  let looked = null;

  function follow({ clientX, pointerType }) {
    if (pointerType !== "mouse") return;
    const { left, width } = slider.getBoundingClientRect();
    slider.value = first + ((clientX - left) / width) * (last - first);
    look(Number(slider.value));
  }

  function look(at) {
    looked = at;
    drawTime();
  }

  function update(given) {
    series = given;
    const highest = Math.max(0, ...series.flatMap(({ points }) => points.map(([, value]) => value)).filter(Number.isFinite));
    const isDrawn = highest > 0 && series.some(({ points }) => points.length > 1);
    plot.classList.toggle("blank", !isDrawn);
    const sampled = Math.max(...series.map(({ points }) => points.length));
    show(note, !isDrawn);
    text(note, sampled < 2 ? "A line appears with the second sample, in ten seconds." : nothing);
    const ats = series.flatMap(({ points }) => points.map(([at]) => at));
    last = Math.max(...ats, 0);
    first = Math.min(last - LEAST, ...ats);
    const { labels, place } = axis(highest);
    set(grid, "d", `M0 ${HEIGHT - 0.5}H${WIDTH}M${WIDTH / 2} 0V${HEIGHT}${labels.map((value) => `M0 ${height(place(value), HEIGHT)}H${WIDTH}`).join("")}`);
    list(scale, labels.map((value, nth) => [nth, value]), ([nth]) => String(nth), () => el("span"), (label, [, value]) => {
      text(label, format(value));
      label.style.top = `clamp(-6px, ${(1 - place(value)) * 100}% - 8px, 100% - 10px)`;
    });
    list(lines, isDrawn ? series : [], ({ name }) => name,
      ({ kind }) => svg("g", {}, svg("path", { class: `line ${kind}` }), svg("path", { class: `line ${kind} dot` })),
      (group, { points }) => {
        const parts = runs(points, first, last, place, WIDTH, HEIGHT);
        set(group.firstElementChild, "d", path(parts));
        set(group.lastElementChild, "d", path(parts.filter(({ length }) => length === 1)));
      });
    // The same for all lines.
    const broken = series[0].points.filter(([, value]) => Number.isNaN(value));
    set(breaks, "d", isDrawn ? broken.map(([at]) => upright(at)).join("") : "");
    list(legend, series, ({ name }) => name, ({ name, kind }) => el("li", {}, swatch(kind), `${name} `, el("b")), () => undefined);
    set(picture, "aria-label", `${title} over the last ${span(last - first)}. Now: ${series.map((one) => `${one.name} ${told(one.value)}`).join(", ")}.`);
    set(slider, "min", first);
    set(slider, "max", last);
    drawTime();
  }

  function upright(at) {
    return `M${across(at, first, last, WIDTH)} 0V${HEIGHT}`;
  }

  /** Shows the values of the sample that is nearest to the time that is looked at, or those of now. */
  function drawTime() {
    if (looked === null) slider.value = last;
    const far = ([at]) => Math.abs(at - looked);
    const near = looked === null ? null : series[0].points.reduce((best, point) => (far(point) < far(best) ? point : best), [Infinity]);
    const value = ({ points, value: present }) => (near === null ? present : points.find(([at]) => at === near[0])?.[1]);
    series.forEach((one, nth) => text(legend.children[nth].lastElementChild, told(value(one))));
    const when = near && Number.isFinite(near[0]) ? clock(near[0]) : null;
    set(cursor, "d", when && upright(near[0]));
    set(slider, "aria-valuetext", `${when ?? "now"}: ${series.map((one) => `${one.name} ${told(value(one))}`).join(", ")}`);
    text(from, when ? "" : ago(last - first));
    text(middle, when ?? ago((last - first) / 2).replace(" ago", ""));
    text(to, when ? "" : "now");
  }
  return { node, update };
}

/** A chart in a row of a table: one line, with the number that its height stands for. */
export function sparkline() {
  const drawing = svg("path", { class: "line depth" });
  const area = svg("path", { class: "area" });
  const label = el("span", { class: "dim" });
  const node = el("span", { class: "sparkline" },
    svg("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" }, area, drawing), label);
  function update(points) {
    const most = Math.max(0, ...points.map(([, value]) => value));
    const drawn = points.length > 1 && most > 0;
    show(node, drawn);
    if (!drawn) return;
    const last = points[points.length - 1][0];
    const first = Math.min(last - LEAST, points[0][0]);
    const d = path(runs(points, first, last, (value) => value / most, 100, 23));
    set(drawing, "d", d);
    set(area, "d", `${d}L100 24L${(((points[0][0] - first) / (last - first)) * 100).toFixed(1)} 24Z`);
    text(label, `max ${count(most)}`);
    set(node, "title", `At most ${count(most)} messages in ${span(last - first)}`);
  }
  return { node, update };
}

/** Rates per second between samples: `[at, total]` becomes `[at, rate]`. It is unknown after an interruption, and if the total was reset. */
export function rates(samples, column) {
  return samples.slice(1).map((sample, index) => {
    const before = samples[index];
    const grown = sample[column] - before[column];
    return [sample[0], grown >= 0 ? grown / Math.max(1, sample[0] - before[0]) * 1000 : NaN];
  });
}

/** A tick, in one unit, since three of them share a line: `75 s ago`, `2.5 min ago`, `30 min ago`. */
function ago(ms) {
  if (ms < 115000 && Math.round(ms / 5000) !== 12) return `${Math.round(ms / 5000) * 5} s ago`;
  if (ms < 600000) return `${Math.round(ms / 6000) / 10} min ago`;
  return `${span(Math.round(ms / 60000) * 60000)} ago`;
}

function swatch(kind) {
  return svg("svg", { class: "swatch", viewBox: "0 0 18 8", "aria-hidden": "true" }, svg("path", { class: `line ${kind}`, d: "M0 4H18" }));
}

function across(at, first, last, width) {
  return (((at - first) / Math.max(1, last - first)) * width).toFixed(1);
}

/** The height of a place on an axis, from 0 to 1. */
function height(place, high) {
  return (high - 1 - Math.min(place, 1) * (high - 2)).toFixed(1);
}

/** The points as `x y` in runs of those that a line joins: it is interrupted where values are missing for a while. */
function runs(points, first, last, place, width, high) {
  const found = [];
  let before = null;
  for (const [at, value] of points) {
    if (Number.isNaN(value)) before = null;
    if (!Number.isFinite(value)) continue;
    const y = height(place(value), high);
    if (before === null || at - before >= GAP) found.push([]);
    found[found.length - 1].push(`${across(at, first, last, width)} ${y}`);
    before = at;
  }
  return found;
}

/** A path through runs of points. */
function path(parts) {
  return parts.map((run) => `M${run.join("L")}h.1`).join("");
}

/** The next number that begins with 1, 2 or 5. */
function nice(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= value) ?? value;
}
