// Queues that are selected in the list, and what is done with them together.

import { actions } from "./actions.js";
import { read } from "./api.js";
import { concerns, isDanger, WORDS } from "./bulk.js";
import { el, set, show, text } from "./dom.js";
import { count, many, param, shown } from "./format.js";

/** The most queues that one request reads. */
const READ = 200;

function keyOf(row) {
  return JSON.stringify(param(row, "queue"));
}

/** All queues that a filter selects, which is a query of the API, with their counts of now. */
async function readAll(filter) {
  const rows = [];
  for (let offset = 0, total = 1; offset < total; offset += READ) {
    const answer = await read("queues", { sort: "name", limit: READ, offset, ...Object.fromEntries(new URLSearchParams(filter)) });
    rows.push(...answer.queues);
    ({ total } = answer);
  }
  return rows.filter((row) => !row.error);
}

export function queueSelection(shared) {
  /** The selected queues as they were read last, by their keys. */
  const selected = new Map();
  let listed = [];
  /** How many queues the filter selects, and the filter. */
  let total = 0;
  let current = "";
  /** The filter with which all were selected; null if each was. */
  let whole = null;
  const all = el("input", { type: "checkbox", "aria-label": "Select all queues that are shown", change: () => choose(all.checked ? listed : []) });
  const summary = el("p", { class: "dim", role: "status" });
  const every = el("button", { type: "button", class: "quiet", click: selectEvery });
  const none = el("button", { type: "button", class: "quiet", click: () => choose([]) }, "Select none");
  const choices = Object.entries(WORDS).map(([what, words]) => ({
    what, button: el("button", { type: "button", class: isDanger(what) ? "danger" : "", click: () => act(what) }, words),
  }));
  const bar = el("div", { class: "bulk write", hidden: true }, summary, every, none, el("div", { class: "buttons", role: "group", "aria-label": "Actions on these queues" }, choices.map(({ button }) => button)));

  function draw() {
    const number = selected.size;
    show(bar, number > 0);
    const isAll = listed.length > 0 && listed.every((row) => selected.has(keyOf(row)));
    all.checked = isAll;
    all.indeterminate = number > 0 && !isAll;
    text(summary, `${many(number, "queue")} selected`);
    show(every, isAll && total > number);
    text(every, `Select all ${count(total)}${current ? " that match the filter" : ""}`);
    for (const { what, button } of choices) button.disabled = ![...selected.values()].some((row) => concerns(what, row));
    for (const check of document.querySelectorAll(".queues td .select input")) check.checked = selected.has(check.value);
  }

  /** Selects these and no others. */
  function choose(rows, filter = null) {
    whole = filter;
    selected.clear();
    for (const row of rows) selected.set(keyOf(row), row);
    draw();
  }

  /** Also those that the list does not show. */
  async function selectEvery() {
    const filter = current;
    set(every, "aria-disabled", "true");
    try {
      const rows = await readAll(filter);
      if (filter === current) choose(rows, filter);
    } catch (problem) {
      shared.say(`Not possible: ${problem.message}`);
    }
    set(every, "aria-disabled", null);
  }

  /** Selects these, also those that the list does not show. The list must have no filter. */
  async function select(queues) {
    const keys = new Set(queues.map((queue) => JSON.stringify(queue)));
    try {
      choose((await readAll("")).filter((row) => keys.has(keyOf(row))), "");
    } catch (problem) {
      shared.say(`Not possible: ${problem.message}`);
    }
  }

  /** Asks about the selected queues. Of those that the list does not show, the counts are read again. */
  async function act(what) {
    try {
      if (whole !== null) choose((await readAll(whole)).filter((row) => selected.has(keyOf(row))), whole);
      actions(shared, {}).queues(what, [...selected.values()]);
    } catch (problem) {
      shared.say(`Not possible: ${problem.message}`);
    }
  }

  /** The box of a row. */
  function box(row) {
    const key = keyOf(row);
    const change = ({ target }) => {
      if (target.checked) selected.set(key, listed.find((one) => keyOf(one) === key) ?? row);
      else selected.delete(key);
      draw();
    };
    return el("label", { class: "write select" }, el("input", { type: "checkbox", value: key, "aria-label": `Select ${shown(row, "queue")}`, change }));
  }

  /** Notes what the list shows. Others are forgotten, unless all that the same filter selects were chosen. */
  function keep(answer, filter) {
    [listed, total, current] = [answer.queues.filter((row) => !row.error), answer.total, filter];
    const shows = new Map(listed.map((row) => [keyOf(row), row]));
    if (whole !== filter) whole = null;
    for (const key of [...selected.keys()]) {
      if (shows.has(key)) selected.set(key, shows.get(key));
      else if (whole === null) selected.delete(key);
    }
    draw();
  }
  return { bar, all: el("label", { class: "write select" }, all), box, keep, select };
}
