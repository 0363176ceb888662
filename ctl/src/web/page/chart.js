// Small charts of lines over time, as SVG. Lines differ by their dashes as well as by their colours.

import { el, svg, list, set, text } from "./dom.js";
import { clock, span } from "./format.js";

const WIDTH = 600;
const HEIGHT = 120;
/** A chart shows at least this time, so that it does not jump while its history is short. */
const LEAST = 120000;

/** A chart with a title. `update` draws series of `{name, points: [[at, value]], value}`. */
export function chart(title, format) {
  const lines = svg("g");
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
    svg("path", { class: "grid", d: `M0 .5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}` }), lines);
  const most = el("span", { class: "most" });
  const from = el("span");
  const note = el("p", { class: "note" }, "Collecting: lines appear with the second sample, in a few seconds.");
  const legend = el("ul", { class: "legend" });
  const node = el("figure", { class: "chart" },
    el("figcaption", {}, title), legend,
    el("div", { class: "plot" }, most, picture, note),
    el("div", { class: "times", "aria-hidden": "true" }, from, el("span", {}, "now")));

  function update(series) {
    const all = series.flatMap(({ points }) => points);
    const enough = series.some(({ points }) => points.length > 1);
    note.hidden = enough;
    const last = Math.max(...all.map(([at]) => at), 0);
    const first = Math.min(last - LEAST, ...all.map(([at]) => at));
    const top = nice(Math.max(0, ...all.map(([, value]) => value)));
    text(most, enough ? format(top) : "");
    text(from, enough ? `${span(last - first)} ago` : "");
    set(from, "title", enough ? clock(first) : null);
    list(lines, enough ? series : [], ({ name }) => name,
      ({ kind }) => svg("path", { class: `line ${kind}` }),
      (path, { points }) => set(path, "d", line(points, first, last, top, WIDTH, HEIGHT)));
    list(legend, series, ({ name }) => name,
      ({ name, kind }) => el("li", {}, swatch(kind), `${name} `, el("b")),
      (item, { value }) => text(item.lastElementChild, format(value)));
    const words = series.map(({ name, value }) => `${name} ${format(value)}`).join(", ");
    set(picture, "aria-label", `${title} over the last ${span(last - first)}. Now: ${words}.`);
  }
  return { node, update };
}

/** A chart in a row of a table: one line, without words. */
export function sparkline() {
  const path = svg("path", { class: "line depth" });
  const area = svg("path", { class: "area" });
  const node = svg("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" }, area, path);
  function update(points) {
    const drawn = points.length > 1;
    const last = drawn ? points[points.length - 1][0] : 0;
    const first = drawn ? Math.min(last - LEAST, points[0][0]) : 0;
    const values = points.map(([, value]) => value);
    const most = Math.max(1, ...values);
    // What did not change is a line in the middle, unless it is nothing.
    const top = most === Math.min(...values) ? most * 2 : most * 1.1;
    const d = drawn ? line(points, first, last, top, 100, 23) : "";
    set(path, "d", d);
    const start = drawn ? ((points[0][0] - first) / (last - first)) * 100 : 0;
    set(area, "d", drawn ? `${d}L100 24L${start.toFixed(1)} 24Z` : "");
  }
  return { node, update };
}

/** Rates per second between samples: `[at, total]` becomes `[at, rate]`. A total that fell was reset. */
export function rates(samples, column) {
  return samples.slice(1).map((sample, index) => {
    const before = samples[index];
    return [sample[0], Math.max(0, sample[column] - before[column]) / Math.max(1, sample[0] - before[0]) * 1000];
  });
}

function swatch(kind) {
  return svg("svg", { class: "swatch", viewBox: "0 0 18 8", "aria-hidden": "true" }, svg("path", { class: `line ${kind}`, d: "M0 4H18" }));
}

function line(points, first, last, top, width, height) {
  return points.map(([at, value], index) => {
    const x = ((at - first) / Math.max(1, last - first)) * width;
    const y = height - 1 - (Math.min(value, top) / top) * (height - 2);
    return `${index === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
  }).join("");
}

/** The next number that begins with 1, 2 or 5. */
function nice(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= value) ?? value;
}
