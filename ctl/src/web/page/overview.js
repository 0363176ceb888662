// All queues: what they hold together, and a page of the list.

import { read } from "./api.js";
import { actions } from "./actions.js";
import { chart, rates, sparkline } from "./chart.js";
import { el, list, set, show, text } from "./dom.js";
import { address, count, distance, many, param, rate, shown, span } from "./format.js";

/** Queues on a page. */
const PAGE = 50;
const SORTS = [["name", "Name"], ["dead", "Most dead"], ["ready", "Most ready"], ["delayed", "Most delayed"], ["inflight", "Most in flight"], ["oldest-ready", "Longest wait"]];
const STATES = [["ready", "Ready"], ["delayed", "Delayed"], ["inflight", "In flight"], ["dead", "Dead"], ["done", "Done"]];
const COLUMNS = [["Queue", "name"], ["Depth", "depth"], ["Ready", "num"], ["Delayed", "num"], ["In flight", "num"], ["Dead", "num"], ["In /s", "num"], ["Out /s", "num"], ["Oldest ready", "num"], ["State", "state"]];

export function overview(params, shared) {
  const state = { contains: params.contains ?? "", sort: params.sort ?? "name", offset: Number(params.offset) || 0 };
  const totals = el("dl", { class: "totals" });
  const depth = chart("Messages", count);
  const flow = chart("Messages per second", rate);
  const warning = el("p", { class: "warning", hidden: true });
  const range = el("p", { class: "range", role: "status" });
  const rows = el("tbody", { role: "rowgroup" });
  const table = el("table", { class: "queues", role: "table", "aria-label": "Queues" },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, COLUMNS.map(([name, kind]) => el("th", { class: kind, role: "columnheader", scope: "col" }, name)))), rows);
  const nothing = el("div", { class: "empty", hidden: true });
  const previous = el("button", { type: "button", click: () => turn(-PAGE) }, "Previous");
  const next = el("button", { type: "button", click: () => turn(PAGE) }, "Next");
  const pager = el("nav", { class: "pager", "aria-label": "Pages of queues", hidden: true }, previous, next);
  const filter = el("input", { type: "search", id: "contains", value: state.contains, placeholder: "Part of a name", autocomplete: "off", autocapitalize: "none", spellcheck: "false", input: () => change({ contains: filter.value }) });
  const sort = el("select", { id: "sort", change: () => change({ sort: sort.value }) }, SORTS.map(([value, name]) => el("option", { value, selected: value === state.sort }, name)));
  const push = el("button", { type: "button", class: "write", click: () => actions(shared, {}).push() }, "Push a message…");

  const node = el("div", { class: "overview" },
    el("div", { class: "head" }, el("h1", {}, "Queues"), push), totals,
    el("div", { class: "charts" }, depth.node, flow.node), warning,
    el("div", { class: "tools" },
      el("div", { class: "field" }, el("label", { for: "contains" }, "Filter"), filter),
      el("div", { class: "field" }, el("label", { for: "sort" }, "Order"), sort), range),
    table, nothing, pager);

  function change(part) {
    Object.assign(state, { offset: 0 }, part);
    remember();
    shared.refresh();
  }

  function turn(by) {
    state.offset = Math.max(0, state.offset + by);
    remember();
    shared.refresh();
    table.scrollIntoView({ block: "start" });
  }

  /** The address follows, so that it can be shared, but letters do not add steps to the history. */
  function remember() {
    const kept = Object.entries(state).filter(([name, value]) => value !== "" && value !== 0 && !(name === "sort" && value === "name"));
    history.replaceState(null, "", address("", Object.fromEntries(kept)));
  }

  async function refresh() {
    const asked = { ...state };
    const query = { sort: asked.sort, offset: asked.offset, limit: PAGE };
    if (asked.contains) query.contains = asked.contains;
    const [server, queues] = await Promise.all([read("server"), read("queues", query)]);
    // An answer to an earlier request is not shown.
    if (asked.contains !== state.contains || asked.sort !== state.sort || asked.offset !== state.offset) return;
    shared.learn(server);
    drawTotals(server);
    drawQueues(queues);
  }

  function drawTotals(server) {
    const held = server.totals;
    const speed = server.rates ?? {};
    const entries = STATES.map(([field, name]) => [name, count(held[field] ?? 0), field]);
    entries.push(["Pushed /s", rate(speed.pushed), "flow"], ["Delivered /s", rate(speed.delivered), "flow"]);
    list(totals, entries, ([name]) => name,
      ([name, , kind]) => el("div", { class: kind }, el("dt", {}, name), el("dd")),
      (item, [name, value]) => {
        text(item.lastElementChild, value);
        item.classList.toggle("some", name === "Dead" && value !== "0");
      });
    const samples = server.history ?? [];
    depth.update(depths(samples, held));
    flow.update(flows(samples, speed));
    const down = server.servers.filter((one) => one.error).map((one) => `${one.server}: ${one.error}`);
    show(warning, down.length > 0);
    text(warning, down.length === 0 ? "" : `${down.length === 1 ? "A master" : `${down.length} masters`} cannot be reached, so counts are too low. ${down.join(" ")}`);
  }

  function drawQueues(answer) {
    if (answer.total > 0 && answer.offset >= answer.total) return turn(-PAGE);
    list(rows, answer.queues, (row) => JSON.stringify(param(row, "queue")), makeRow, fillRow);
    const last = Math.min(answer.offset + PAGE, answer.total);
    const sorting = answer.sorted === false ? " Sorting…" : "";
    text(range, answer.total === 0 ? "" : `${last - answer.offset < answer.total ? `${count(answer.offset + 1)}–${count(last)} of ` : ""}${many(answer.total, "queue")}${answer.limited ? ", and there are more" : ""}.${sorting}`);
    show(table, answer.queues.length > 0);
    show(pager, answer.total > PAGE);
    previous.disabled = answer.offset === 0;
    next.disabled = last >= answer.total;
    drawNothing(answer);
    return undefined;
  }

  function drawNothing(answer) {
    const kind = answer.total > 0 ? "" : answer.searching ? "searching" : state.contains ? "filtered" : "none";
    show(nothing, kind !== "");
    if (nothing.dataset.kind === kind + state.contains) return;
    nothing.dataset.kind = kind + state.contains;
    const clear = el("button", { type: "button", click: () => { filter.value = ""; change({ contains: "" }); filter.focus(); } }, "Show all queues");
    const contents = {
      "": [],
      searching: [el("p", {}, "Looking for queues…")],
      filtered: [el("p", {}, `No queue has “${state.contains}” in its name.`), clear],
      none: [el("h2", {}, "There is no queue yet"), el("p", {}, "The first push creates a queue:"), el("pre", {}, "dqctl push mail '{\"to\":\"ann\"}' --in 15m")],
    };
    nothing.replaceChildren(...contents[kind]);
  }

  return { kind: "overview", title: "dq", node, read: refresh };
}

function makeRow(row) {
  const spark = sparkline();
  const cells = COLUMNS.map(([name, kind]) => el("td", { class: kind, role: "cell", "data-label": name }));
  cells[0].append(el("a", { href: address("queue", param(row, "queue")), title: shown(row, "queue") }, shown(row, "queue")));
  cells[1].append(spark.node);
  const node = el("tr", { role: "row" }, cells);
  node.spark = spark;
  return node;
}

function fillRow(node, row) {
  node.spark.update(row.depths ?? []);
  const cells = [...node.children];
  const values = [row.ready, row.delayed, row.inflight, row.dead].map(count);
  values.push(rate(row.rates?.pushed), rate(row.rates?.delivered), Number.isFinite(row["oldest-ready"]) ? span(row["oldest-ready"]) : "–");
  values.forEach((value, index) => {
    text(cells[index + 2], value);
    cells[index + 2].classList.toggle("zero", value === "0" || value === "–");
  });
  cells[5].classList.toggle("bad", row.dead > 0);
  const [words, kind] = row.error ? [row.error, "bad"] : condition(row);
  text(cells[9], words);
  set(cells[9], "class", `state ${kind}`);
}

/** The condition of a queue in words. */
export function condition(info) {
  if (info["forward-error"]) return ["forwarding fails", "bad"];
  if (info.paused) return [Number.isFinite(info["paused-until"]) ? `paused, resumes ${distance(info["paused-until"])}` : "paused", "paused"];
  if (info.maxlen > 0 && info.ready + info.delayed + info.inflight >= info.maxlen) return ["full", "bad"];
  if (Number.isFinite(info["next-delivery"])) return ["at its rate limit", "paused"];
  return ["open", "open"];
}

/** The series of both charts, from the samples of the API and what is held now. */
export function depths(samples, held) {
  return [["Ready", "ready", 1], ["Delayed", "delayed", 2], ["In flight", "inflight", 3], ["Dead", "dead", 4]].map(([name, kind, column]) => ({
    name, kind, points: samples.map((sample) => [sample[0], sample[column]]), value: held[kind] ?? 0,
  }));
}

export function flows(samples, now) {
  return [["Pushed", "pushed", 5], ["Delivered", "delivered", 6], ["Acked", "acked", 7]].map(([name, kind, column]) => ({
    name, kind, points: rates(samples, column), value: now?.[kind] ?? 0,
  }));
}
