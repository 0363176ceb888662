// Small charts of lines over time, as SVG. Lines differ by their dashes as well as by their colours.

import { el, svg, list, set, show, text } from "./dom.js";
import { clock, count, span } from "./format.js";

const WIDTH = 600;
const HEIGHT = 64;
/** A chart shows at least this time, so that it does not jump while its history is short. */
const LEAST = 120000;
/** Samples that are further apart are not joined by a line, in ms. */
const GAP = 60000;

/** A chart with a title, and what it says if there is nothing to draw. `update` draws series of `{name, kind, points: [[at, value]]}` with their last `value`, or `words` for it. The value of a point may be null, or NaN, which interrupts the line. */
export function chart(title, format, nothing) {
  const lines = svg("g");
  const breaks = svg("path", { class: "break" });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
    svg("path", { class: "grid", d: `M0 .5H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}` }), breaks, lines);
  const most = el("span", { class: "most" });
  const from = el("span");
  const note = el("p", { class: "note" });
  const legend = el("ul", { class: "legend" });
  const plot = el("div", { class: "blank" }, el("div", { class: "plot" }, most, picture),
    el("div", { class: "times", "aria-hidden": "true" }, from, el("span", {}, "now")));
  // The note stands in place of the lines, so that what is below does not move when they appear.
  const node = el("figure", { class: "chart" }, el("figcaption", {}, title), legend, el("div", { class: "drawing" }, plot, note));

  const latest = ({ value, words }) => words ?? format(value);

  function update(series) {
    const all = series.flatMap(({ points }) => points.filter(([, value]) => Number.isFinite(value)));
    const highest = Math.max(0, ...all.map(([, value]) => value));
    const isDrawn = highest > 0 && series.some(({ points }) => points.length > 1);
    plot.classList.toggle("blank", !isDrawn);
    const sampled = Math.max(...series.map(({ points }) => points.length));
    show(note, !isDrawn);
    text(note, sampled < 2 ? "A line appears with the second sample, in ten seconds." : nothing);
    const ats = series.flatMap(({ points }) => points.map(([at]) => at));
    const last = Math.max(...ats, 0);
    const first = Math.min(last - LEAST, ...ats);
    const top = nice(highest);
    text(most, isDrawn ? format(top) : "");
    text(from, isDrawn ? `${span(last - first)} ago` : "");
    set(from, "title", isDrawn ? clock(first) : null);
    list(lines, isDrawn ? series : [], ({ name }) => name,
      ({ kind }) => svg("path", { class: `line ${kind}` }),
      (path, { points }) => set(path, "d", line(points, first, last, top, WIDTH, HEIGHT)));
    // The same for all lines.
    const broken = series[0].points.filter(([, value]) => Number.isNaN(value));
    set(breaks, "d", isDrawn ? broken.map(([at]) => `M${across(at, first, last, WIDTH)} 0V${HEIGHT}`).join("") : "");
    list(legend, series, ({ name }) => name,
      ({ name, kind }) => el("li", {}, swatch(kind), `${name} `, el("b")),
      (item, one) => text(item.lastElementChild, latest(one)));
    const known = series.map((one) => `${one.name} ${latest(one)}`).join(", ");
    set(picture, "aria-label", `${title} over the last ${span(last - first)}. Now: ${known}.`);
  }
  return { node, update };
}

/** A chart in a row of a table: one line, with the number that its height stands for. */
export function sparkline() {
  const path = svg("path", { class: "line depth" });
  const area = svg("path", { class: "area" });
  const label = el("span", { class: "dim" });
  const node = el("span", { class: "sparkline" },
    svg("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" }, area, path), label);
  function update(points) {
    const most = Math.max(0, ...points.map(([, value]) => value));
    const drawn = points.length > 1 && most > 0;
    show(node, drawn);
    if (!drawn) return;
    const last = points[points.length - 1][0];
    const first = Math.min(last - LEAST, points[0][0]);
    const d = line(points, first, last, most, 100, 23);
    set(path, "d", d);
    set(area, "d", `${d}L100 24L${(((points[0][0] - first) / (last - first)) * 100).toFixed(1)} 24Z`);
    text(label, count(most));
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

function swatch(kind) {
  return svg("svg", { class: "swatch", viewBox: "0 0 18 8", "aria-hidden": "true" }, svg("path", { class: `line ${kind}`, d: "M0 4H18" }));
}

function across(at, first, last, width) {
  return (((at - first) / Math.max(1, last - first)) * width).toFixed(1);
}

/** A path through the points. It is interrupted where values are missing for a while; a point that stands alone is a dot. */
function line(points, first, last, top, width, height) {
  let before = null;
  return points.map(([at, value]) => {
    if (Number.isNaN(value)) before = null;
    if (!Number.isFinite(value)) return "";
    const x = across(at, first, last, width);
    const y = (height - 1 - (Math.min(value, top) / top) * (height - 2)).toFixed(1);
    const joins = before !== null && at - before < GAP;
    before = at;
    return joins ? `L${x} ${y}` : `M${x} ${y}h.1`;
  }).join("");
}

/** The next number that begins with 1, 2 or 5. */
function nice(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= value) ?? value;
}
