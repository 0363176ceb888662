// All queues: what is wrong, what they hold together, and a page of the list.

import { read } from "./api.js";
import { actions } from "./actions.js";
import { chart, rates, sparkline } from "./chart.js";
import { chips, deathWords, levelOf } from "./condition.js";
import { el, list, nameOf, set, show, text } from "./dom.js";
import { findings } from "./findings.js";
import { queueSelection } from "./queues.js";
import { address, count, learnClock, many, param, rate, shown, span } from "./format.js";

/** Queues on a page. */
const PAGE = 50;
/** The order of the API, and what it is called. Numbers are sorted from the greatest on. */
const SORTS = [["trouble", "Trouble first"], ["name", "Name"], ["ready", "Most ready"], ["delayed", "Most delayed"], ["inflight", "Most in flight"], ["dead", "Most dead"], ["oldest-ready", "Longest wait"], ["in", "Most pushed"], ["out", "Most completed"]];
/** The states that queues can be filtered by. */
const STATES = ["forwarding fails", "full", "messages die", "no consumer", "late", "groups held", "paused", "closed", "at its limit in flight", "at its rate limit", "dead", "dead letters"];
const TOTALS = [["ready", "Ready"], ["delayed", "Delayed"], ["inflight", "In flight"], ["dead", "Dead"], ["done", "Done"]];
/** Names of columns, their classes, and their orders. */
const COLUMNS = [["Queue", "name", "name"], ["State", "state", "trouble"], ["Depth", "depth"], ["Ready", "num", "ready"], ["Delayed", "num", "delayed"], ["In flight", "num", "inflight"], ["Dead", "num", "dead"], ["In /s", "num", "in"], ["Out /s", "num", "out"], ["Oldest", "num", "oldest-ready"]];

export function overview(params, shared) {
  const state = { contains: params.contains ?? "", state: STATES.includes(params.state) ? params.state : "", sort: SORTS.some(([sort]) => sort === params.sort) ? params.sort : "trouble", reverse: params.reverse === "1" ? 1 : 0, offset: Number(params.offset) || 0 };
  const totals = el("dl", { class: "totals" });
  const depth = chart("Messages", count, "No message in the time that is known.");
  const flow = chart("Messages per second", count, "Nothing was pushed or delivered in the time that is known.", rate);
  const warning = el("p", { class: "alarm", hidden: true });
  const range = el("p", { class: "range", role: "status" });
  const rows = el("tbody", { role: "rowgroup" });
  const headings = COLUMNS.map(heading);
  const choice = queueSelection(shared);
  const found = findings(shared, async (queues) => {
    showAll();
    await choice.select(queues);
    choice.bar.scrollIntoView({ block: "center" });
  });
  headings[0].append(choice.all);
  const table = el("table", { class: "queues", role: "table", "aria-label": "Queues" },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, headings)), rows);
  const nothing = el("div", { class: "empty", hidden: true });
  const previous = el("button", { type: "button", click: () => turn(-PAGE) }, "Previous");
  const next = el("button", { type: "button", click: () => turn(PAGE) }, "Next");
  const pager = el("nav", { class: "pager", "aria-label": "Pages of queues", hidden: true }, previous, next);
  const filter = el("input", { type: "search", id: "contains", value: state.contains, placeholder: "Filter by name", autocomplete: "off", autocapitalize: "none", spellcheck: "false", input: () => change({ contains: filter.value }) });
  const only = el("select", { id: "state", change: () => change({ state: only.value }) }, el("option", { value: "" }, "Any state"), STATES.map((name) => el("option", { selected: name === state.state }, name)));
  const sort = el("select", { id: "sort", change: () => change({ sort: sort.value, reverse: 0 }) }, SORTS.map(([value, name]) => el("option", { value }, name)));
  const push = el("button", { type: "button", class: "write", click: () => actions(shared, {}).push() }, "Push a message…");

  const node = el("div", { class: "overview" },
    el("div", { class: "head" }, el("h1", {}, "Queues"), push), warning, found.node, el("div", { class: "figures" }, totals, el("div", { class: "charts" }, depth.node, flow.node)),
    el("div", { class: "tools" },
      el("div", { class: "field" }, el("label", { for: "contains" }, "Filter"), filter),
      el("div", { class: "field" }, el("label", { for: "state" }, "State"), only),
      el("div", { class: "field order" }, el("label", { for: "sort" }, "Order"), sort), range),
    choice.bar, table, nothing, pager);
  showOrder();

  /** A heading sorts by its column, and the other way round if it does already. */
  function heading([name, kind, key]) {
    const click = () => change({ sort: key, reverse: state.sort === key ? 1 - state.reverse : 0 });
    return el("th", { class: kind, role: "columnheader", scope: "col" }, key ? el("button", { type: "button", class: "sort", click }, name) : name);
  }

  function showOrder() {
    sort.value = state.sort;
    COLUMNS.forEach(([, , key], index) => {
      const isAscending = (key === "name") !== (state.reverse === 1);
      set(headings[index], "aria-sort", key !== state.sort ? null : isAscending ? "ascending" : "descending");
    });
  }

  function change(part) {
    Object.assign(state, { offset: 0 }, part);
    showOrder();
    remember();
    shared.refresh();
  }

  function showAll() {
    [filter.value, only.value] = ["", ""];
    change({ contains: "", state: "" });
  }

  /** What selects queues, as a query of the API. */
  function chosen() {
    return new URLSearchParams(Object.entries({ contains: state.contains, state: state.state }).filter(([, value]) => value !== "")).toString();
  }

  function turn(by) {
    state.offset = Math.max(0, state.offset + by);
    remember();
    shared.refresh();
    table.scrollIntoView({ block: "start" });
  }

  /** The address follows, so that it can be shared, but letters do not add steps to the history. */
  function remember() {
    const kept = Object.entries(state).filter(([name, value]) => value !== "" && value !== 0 && !(name === "sort" && value === "trouble"));
    history.replaceState(null, "", address("", Object.fromEntries(kept)));
  }

  async function refresh() {
    const asked = JSON.stringify(state);
    const query = { sort: state.sort, offset: state.offset, limit: PAGE, reverse: state.reverse, ...Object.fromEntries(new URLSearchParams(chosen())) };
    const later = read("queues", query);
    // What is wrong with the server explains why the queues cannot be read.
    later.catch(() => undefined);
    const server = await read("server");
    const queues = await later;
    // An answer to an earlier request is not shown.
    if (asked !== JSON.stringify(state)) return;
    shared.learn(server);
    drawTotals(server);
    drawQueues(queues);
    found.read();
  }

  function drawTotals(server) {
    const held = server.totals;
    const speed = server.rates ?? {};
    const entries = TOTALS.map(([field, name]) => [name, count(held[field]), field]);
    entries.push(["In /s", rate(speed.pushed), "flow"], ["Out /s", rate(speed.completed), "flow"]);
    list(totals, entries, ([name]) => name,
      ([name, , kind]) => el("div", { class: kind }, el("dt", {}, name), el("dd")),
      (item, [name, value]) => {
        text(item.lastElementChild, value);
        item.classList.toggle("some", name === "Dead" && value !== "0" && value !== "–");
      });
    const samples = server.history ?? [];
    depth.update(depths(samples, held));
    flow.update(flows(samples, server.rates));
    const down = server.servers.filter((one) => one.error).map((one) => `${one.server}: ${one.error}`);
    show(warning, down.length > 0);
    text(warning, down.length === 0 ? "" : `${down.length === 1 ? "A master" : `${down.length} masters`} cannot be read, so counts are too low. ${down.join(" ")}`);
  }

  function drawQueues(answer) {
    if (answer.total > 0 && answer.offset >= answer.total) return turn(Math.floor((answer.total - 1) / PAGE) * PAGE - state.offset);
    list(rows, answer.queues, (row) => JSON.stringify(param(row, "queue")), (row) => makeRow(row, choice.box(row)), fillRow);
    choice.keep(answer, chosen());
    table.classList.toggle("long", rows.querySelector(".cut") !== null);
    const last = Math.min(answer.offset + PAGE, answer.total);
    const sorting = answer.sorted === false ? " Sorting…" : "";
    const part = last - answer.offset < answer.total ? `${count(answer.offset + 1)}–${count(last)} of ` : "";
    const troubled = [[answer.troubled?.[0], "in trouble"], [answer.troubled?.[1], "to look at"]].filter(([number]) => number > 0).map(([number, words]) => `${count(number)} ${words}`);
    text(range, answer.total === 0 ? "" : `${part}${[many(answer.total, "queue"), ...troubled].join(" · ")}${answer.limited ? ", and there are more" : ""}.${sorting}`);
    show(table, answer.queues.length > 0);
    show(pager, answer.total > PAGE);
    previous.disabled = answer.offset === 0;
    next.disabled = last >= answer.total;
    drawNothing(answer);
    return undefined;
  }

  function drawNothing(answer) {
    const kind = answer.total > 0 ? "" : answer.searching ? "searching" : chosen() ? "filtered" : "none";
    show(nothing, kind !== "");
    if (nothing.dataset.kind === kind + chosen()) return;
    nothing.dataset.kind = kind + chosen();
    const clear = el("button", { type: "button", click: () => { showAll(); filter.focus(); } }, "Show all queues");
    const contents = {
      "": [],
      searching: [el("p", {}, "Looking for queues…")],
      filtered: [el("p", {}, `No queue ${[state.contains && `has “${state.contains}” in its name`, state.state && `is in the state “${state.state}”`].filter(Boolean).join(" and ")}.`), clear],
      none: [el("h2", {}, "There is no queue yet"), el("p", {}, "The first push creates a queue:"), el("pre", {}, "dqctl push mail '{\"to\":\"ann\"}' --in 15m")],
    };
    nothing.replaceChildren(...contents[kind]);
  }

  /** Shows what was known when the servers answered last, and returns of when that is; null if nothing is known. */
  async function last() {
    const { last: known, history: samples, now } = await read("last");
    // The servers may have answered meanwhile.
    if (!known?.queues.length || !node.classList.contains("unread")) return null;
    learnClock(now);
    drawTotals({ totals: known.totals, history: samples, servers: [] });
    drawQueues({ ...known, offset: 0 });
    show(pager, false);
    return known.at;
  }

  return { kind: "overview", title: "dq", node, read: refresh, last };
}

function makeRow(row, box) {
  const spark = sparkline();
  const cells = COLUMNS.map(([name, kind]) => el("td", { class: kind, role: "cell", "data-label": name }));
  cells[0].append(el("a", { href: address("queue", param(row, "queue")), title: shown(row, "queue") }, nameOf(shown(row, "queue"))), box);
  cells[1].append(el("div", { class: "why" }, el("ul", { class: "chips" }), el("p", { class: "deaths dim" })));
  cells[2].append(spark.node);
  const node = el("tr", { role: "row" }, cells);
  node.spark = spark;
  return node;
}

function fillRow(node, row) {
  node.spark.update(row.depths ?? []);
  const cells = [...node.children];
  const [conditions, deaths] = cells[1].firstElementChild.children;
  chips(conditions, row);
  const died = deathWords(row);
  text(deaths, died);
  set(deaths, "title", died || null);
  set(node, "class", levelOf(row));
  const values = [row.ready, row.delayed, row.inflight, row.dead].map(count);
  values.push(rate(row.rates?.pushed), rate(row.rates?.completed), Number.isFinite(row["oldest-ready"]) ? span(row["oldest-ready"]) : "–");
  values.forEach((value, index) => {
    text(cells[index + 3], value);
    cells[index + 3].classList.toggle("zero", value === "0" || value === "–");
  });
  cells[6].classList.toggle("bad", row.dead > 0);
}

/** The series of both charts, from the samples of the API and what is held now. A sample of a time alone is an interruption. */
export function depths(samples, held) {
  return [["Ready", "ready", 1], ["Delayed", "delayed", 2], ["In flight", "inflight", 3], ["Dead", "dead", 4]].map(([name, kind, column]) => ({
    name, kind, points: samples.map((sample) => [sample[0], sample[column] ?? NaN]), value: held[kind],
  }));
}

export function flows(samples, now) {
  return [["In", "pushed", 5], ["Delivered", "delivered", 6], ["Out", "completed", 7]].map(([name, kind, column]) => ({
    name, kind, points: rates(samples, column), value: now?.[kind],
  }));
}
