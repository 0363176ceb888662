// One queue: its condition, charts, actions, and a tab for each state.

import { read } from "./api.js";
import { actions } from "./actions.js";
import { batchView } from "./batch.js";
import { chart, logarithmic } from "./chart.js";
import { DEAD, DYING, fillMark, isHeld, levelOf, mark, sentences, targetQueue } from "./condition.js";
import { deadList } from "./dead.js";
import { el, list, pairs, set, show, text, whole } from "./dom.js";
import { address, bytes, count, distance, exactSpan, learnClock, many, param, rate, shown, span, typedSpan } from "./format.js";
import { number, SPAN_HINT, time } from "./ask.js";
import { asLeft } from "./keys.js";
import { batchList, consumerList, groupList } from "./holders.js";
import { messageList, scheduleList } from "./lists.js";
import { depths, flows } from "./overview.js";

const TABS = [["ready", "Ready"], ["delayed", "Delayed"], ["inflight", "In flight"], ["dead", "Dead"], ["letters", "Dead letters"], ["consumers", "Consumers"], ["done", "Done"], ["schedules", "Schedules"], ["groups", "Groups"], ["batches", "Batches"], ["details", "Details"]];
const GROUPED = new Set(["ready", "delayed", "inflight", "dead"]);
const TIMES = new Set(["lease", "maxlease", "delay", "ttl", "backoff-base", "backoff-max", "rate-period", "grouprate-period", "deadttl", "dedupe", "retain"]);
const SETTINGS = ["lease", "delay", "retries", "backoff-base", "backoff-max", "backoff-jitter", "ttl", "maxlen", "maxinflight", "maxpayload", "deadlen", "deadttl", "dedupe", "rate", "rate-period", "groupinflight", "grouporder", "grouprate", "grouprate-period", "errors", "forward", "deadforward", "retain", "donelen", "maxlease"];
const TOTALS = ["pushed", "duplicates", "delivered", "forwarded", "deadforwarded", "acked", "nacked", "given-back", "lease-expired", "died", "expired", "redriven", "cancelled", "rejected-full"];
/** Totals that are not in the AOF, so that a restart may begin them again. */
const FORGOTTEN = new Set(["duplicates", "rejected-full"]);
const COUNTS = new Set(["delayed", "ready", "inflight", "dead", "done", "groups", "blocked", "batches", "known", "payload-bytes", "next-due", "oldest-ready", "waiting-clients", "oldest-inflight", "paused", "paused-until", "closed", "closed-until", "next-delivery", "forward-error", "forward-failing-since", "deadforward-error", "deadforward-failing-since"]);

export function queue(params, shared) {
  const name = param(params, "queue");
  const shownName = shown(params, "queue");
  const acts = actions(shared, name);
  const conditions = el("ul", { class: "conditions" });
  const facts = el("span");
  const moved = el("span");
  const state = el("p", { class: "condition" }, facts, moved);
  const depth = chart("Messages", count, "No message in the time that is known.");
  const flow = chart("Messages per second", count, "Nothing was pushed or delivered in the time that is known.", rate);
  const late = chart("Delivered late by", exactSpan, "Nothing was delivered for the first time in the time that is known.", atMost, logarithmic);
  const run = chart("Run time", exactSpan, "Nothing was acked in the time that is known.", atMost, logarithmic);
  // One button for both ways, so that it keeps the focus.
  const pause = button("Pause…", () => (info.paused ? acts.resume() : acts.pause(info)));
  const close = button("Close…", () => (info.closed ? acts.open() : acts.close()));
  const redrive = button("Redrive…", () => acts.redriveMany(info));
  const promote = button("Run delayed now…", () => acts.promoteMany(info));
  const purge = button("Purge…", () => acts.purge(info, tab), "danger");
  const others = [pause, close, redrive, promote, purge];
  const push = button("Push…", () => acts.push());
  const bar = el("div", { class: "buttons write", role: "group", "aria-label": "Actions on this queue" }, push, others);
  const charts = el("div", { class: "charts" }, depth.node, flow.node, late.node, run.node);
  const tabs = el("nav", { class: "tabs", "aria-label": "Contents of the queue", scroll: showEdges });
  const content = el("div");
  const node = el("div", { class: "queue" },
    el("nav", { class: "crumbs", "aria-label": "Path" }, el("a", { href: asLeft("#/") }, "Queues")),
    // What comes and goes stands below the buttons, so that these do not move.
    el("div", { class: "head" }, el("h1", { class: "name" }, whole(shownName)), bar), conditions, state, charts, tabs, content);
  let info = {};
  let tab;
  let only;
  /** The parameters of the address that the tab was chosen by. */
  let chosen;
  let body;
  let isPlaced = false;
  const shownTabs = new Set();
  choose(params);
  allow([]);

  /** Which actions can be asked for: none before the queue was read. */
  function allow(actions) {
    for (const one of [push, ...others]) one.disabled = !actions.includes(one);
  }

  /** Shows a tab. The rest of the view stays as it is, with the focus. */
  function choose(params) {
    tab = TABS.some(([known]) => known === params.tab) ? params.tab : "ready";
    only = onlyOf(params, tab);
    chosen = params;
    body = bodyOf();
    content.replaceChildren(body.node);
    for (const link of tabs.children) set(link, "aria-current", link.dataset.key === tab ? "page" : null);
    bringTab();
  }

  /** On a phone the tab may be beyond the edge. */
  function bringTab() {
    tabs.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }

  /** Opens the dead messages if messages die, those in flight if consumers hold them for long, and else the first tab that has some. */
  async function openFullest() {
    const answer = await read("queue", name);
    // Somebody has chosen one meanwhile.
    if (chosen.tab !== undefined) return;
    const states = ["ready", "dead", "inflight", "delayed", "done"];
    if (isHeld(answer)) states.unshift("inflight");
    const [worst = []] = answer.conditions ?? [];
    if (answer.conditions?.some(([condition]) => condition === DYING) || `${worst}` === `${DEAD},warning`) states.unshift("dead");
    const full = answer.letters && states[0] === "ready" ? "letters" : states.find((state) => answer.info[state] > 0) ?? tab;
    choose({ ...chosen, tab: full });
  }

  function bodyOf() {
    switch (tab) {
      case "details": return details(acts);
      case "groups": return groupList(name, shared, chosen);
      case "batches": return only ? batchView(name, only, shared) : batchList(name);
      case "consumers": return consumerList(name, shared);
      case "schedules": return scheduleList(name, shared);
      case "dead":
      case "letters": return deadList(name, shared, chosen);
      default: return chosen.find ? deadList(name, shared, chosen) : messageList(name, tab, shared, only);
    }
  }

  function accept(view, next) {
    const isSame = view === "queue" && JSON.stringify(param(next, "queue")) === JSON.stringify(name);
    if (isSame) choose(next);
    return isSame;
  }

  function button(words, click, kind = "") {
    return el("button", { type: "button", class: kind, click }, words);
  }

  async function refresh() {
    try {
      await readAll();
      for (const one of others) show(one, true);
    } catch (problem) {
      // A push would create it. There is nothing else to do.
      if (problem.status === 404) {
        allow([push]);
        for (const one of others) show(one, false);
      }
      throw problem;
    }
  }

  async function readAll() {
    if (chosen.tab === undefined && !only) await openFullest();
    const shownBody = body;
    const [answer] = await Promise.all([read("queue", name), shownBody.read()]);
    info = { ...answer.info, letters: answer.letters };
    learnClock(answer.now);
    // A user who may not read them still sees the rest.
    const { consumers } = isHeld(answer) ? await read("consumers", name).catch(() => ({})) : {};
    const said = { ...info, consumers, held: answer.held, "held-groups": answer["held-groups"], "paused-groups": answer["paused-groups"], conditions: answer.conditions, deaths: answer.deaths };
    for (const part of [charts, content]) show(part, true);
    drawConditions(said);
    const parts = [];
    if (Number.isFinite(info["oldest-ready"])) parts.push(`oldest ready message due ${span(info["oldest-ready"])} ago`);
    if (Number.isFinite(info["oldest-inflight"]) && !isHeld(answer)) parts.push(`oldest delivery began ${span(info["oldest-inflight"])} ago`);
    if (Number.isFinite(info["next-due"])) parts.push(`next delayed message ${distance(info["next-due"])}`);
    parts.push(`${many(info["waiting-clients"] ?? 0, "client")} waiting`, `${bytes(info["payload-bytes"])} of payloads`);
    text(facts, parts.join(" · ").replace(/^./, (letter) => letter.toUpperCase()));
    drawMoved();
    text(pause, info.paused ? "Resume…" : "Pause…");
    text(close, info.closed ? "Open…" : "Close…");
    const isPossible = new Map([[redrive, info.dead], [promote, info.delayed], [purge, info.ready + info.delayed + info.inflight + info.dead + (info.done ?? 0)]]);
    allow([push, ...others].filter((one) => isPossible.get(one) ?? true));
    const samples = answer.history ?? [];
    depth.update(depths(samples, info));
    flow.update(flows(samples, answer.rates));
    late.update(times(samples, 8));
    run.update(times(samples, 9));
    drawTabs();
    shownBody.draw?.(answer);
    // Once it is drawn.
    if (!isPlaced) requestAnimationFrame(bringTab);
    isPlaced = true;
  }

  function drawConditions(said) {
    list(conditions, sentences(said), ([words]) => words.split(":")[0], ([, , condition]) => mark(condition), (item, [words, level, condition]) => {
      fillMark(item, condition, said, name, words);
      set(item, "class", level);
    });
    keepHeight(conditions);
    set(node, "class", `queue ${levelOf(said)}`);
  }

  /** Shows the counts that were known when the server answered last, and returns of when they are; null if none are known. */
  async function last() {
    const { last: known, now } = await read("last", name);
    const [row] = known?.queues ?? [];
    if (!row || !node.classList.contains("unread")) return null;
    learnClock(now);
    info = row;
    drawConditions(row);
    text(facts, "The messages are not known while the server does not answer. Their last numbers are those of the tabs.");
    drawTabs();
    // What they would show is not known.
    for (const part of [charts, content]) show(part, false);
    return known.at;
  }

  /** Says where the dead messages of this queue are, since it holds none of them. */
  function drawMoved() {
    const target = shown(info, "deadforward");
    const goesOn = target !== "" && target !== "NONE";
    const queue = targetQueue(info, "deadforward");
    list(moved, goesOn ? [target] : [], (words) => words,
      () => el("span", {}, " · the dead are moved to ", queue ? el("a", { href: address("queue", queue) }, shown(queue, "queue")) : target), () => undefined);
  }

  function drawTabs() {
    const isUsed = { letters: info.letters, batches: info.batches > 0, done: info.done > 0 || info.retain > 0 };
    // A tab that was there stays, so that the others do not move.
    for (const [key] of TABS) if (key === tab || (isUsed[key] ?? true)) shownTabs.add(key);
    const kept = TABS.filter(([key]) => shownTabs.has(key));
    list(tabs, kept, ([key]) => key,
      ([key, words]) => el("a", { "aria-current": key === tab ? "page" : null }, words, el("span", { class: "badge" })),
      (link, [key]) => {
        // A group stays chosen, since its messages are in several states.
        const group = only?.field === "group" && GROUPED.has(key) ? only.param : {};
        set(link, "href", address("queue", { ...name, tab: key, ...group }));
        const number = info[key];
        show(link.lastElementChild, Number.isFinite(number));
        text(link.lastElementChild, Number.isFinite(number) ? count(number) : "");
      });
    showEdges();
  }

  /** Marks the edges beyond which there are more tabs. */
  function showEdges() {
    const beyond = tabs.scrollWidth - tabs.clientWidth - tabs.scrollLeft;
    tabs.classList.toggle("cut-left", tabs.scrollLeft > 1);
    tabs.classList.toggle("cut-right", beyond > 1);
  }

  return { kind: `queue ${JSON.stringify(name)}`, title: shownName, node, read: refresh, accept, last };
}

/** Whose messages are shown, if not all: those of a group, of a consumer or of a batch. */
function onlyOf(params, tab) {
  const named = (tab === "batches" ? ["batch"] : ["group", "consumer"]).find((field) => params[field] !== undefined || params[`${field}-base64`] !== undefined);
  return named ? { field: named, words: `${named} ${shown(params, named)}`, param: param(params, named) } : null;
}

/** The longest time that the API tells apart, in ms: beyond it there is no bound. */
const LONGEST = 2 ** 22;

/** A time of which only the bound is known that it does not exceed. */
function atMost(ms) {
  return !Number.isFinite(ms) ? "–" : ms > LONGEST ? `> ${span(LONGEST)}` : `≤ ${span(ms)}`;
}

/** The series of what was measured: the median and 99 of 100, of the time between two samples. */
function times(samples, column) {
  return [["median", "ready", 0], ["99 %", "inflight", 1]].map(([name, kind, place]) => {
    const points = samples.map((sample) => [sample[0], sample.length === 1 ? NaN : sample[column]?.[place] ?? null]);
    return { name, kind, points, value: points.findLast(([, value]) => Number.isFinite(value))?.[1] };
  });
}

/** A part that has been high stays so, so that what is below does not move each time that it changes. */
function keepHeight(node) {
  node.style.minHeight = `${Math.max(Number.parseFloat(node.style.minHeight) || 0, node.offsetHeight)}px`;
}

/** Settings, totals, and how long deliveries take. */
function details(acts) {
  const parts = ["Settings", "Totals since its creation", "Times since the server started"].map((title) => [title, el("dl", { class: "pairs" })]);
  const node = el("div", { class: "details" }, parts.map(([title, container]) => el("section", {}, el("h2", {}, title), container)));
  const [settings, totals, times] = parts.map(([, container]) => container);
  let altered = {};
  settings.before(el("button", { type: "button", class: "write", click: () => acts.alter(settingFields(altered)) }, "Change…"));
  node.append(el("button", { type: "button", class: "danger write", click: () => acts.remove(altered) }, "Delete the queue…"));

  function draw({ info, stats, times: took }) {
    altered = info;
    const known = Object.keys(info);
    const others = known.filter((field) => !SETTINGS.includes(field) && !TOTALS.includes(field) && !COUNTS.has(field));
    const value = (field) => (TIMES.has(field) ? exactSpan(info[field]) : typeof info[field] === "number" ? count(info[field]) : String(info[field] ?? "–"));
    pairs(settings, [...SETTINGS.filter((field) => field in info), ...others].map((field) => [field, meaning(field, info[field]) ?? value(field), String(info[field])]));
    pairs(totals, TOTALS.filter((field) => field in info).map((field) => (FORGOTTEN.has(field) ? [`${field}, at least`, value(field), "Pushes that changed nothing are not in the AOF, so a restart may begin this total again."] : [field, value(field)])));
    pairs(times, stats ? [...quantiles("delivered late by", took.lateness), ...quantiles("run time", took.runtime), ["pops without a message", count(stats["pops-empty"])], ["held back by the rate", span(stats["rate-limited-ms"] ?? 0)]] : []);
  }
  return { node, read: async () => undefined, draw };
}

/** Settings that are texts: what a question about them has besides. */
const TEXTS = {
  grouporder: { options: [["due", "due: by due time"], ["turn", "turn: one group after the other"]] },
  forward: { hint: "STREAM, LIST or CHANNEL with a name, as in STREAM jobs, or NONE. Ready messages go there at once." },
  deadforward: { hint: "QUEUE, STREAM or LIST with a name, as in QUEUE mail:dead, or NONE. Dead messages go there at once." },
};

/** Settings that are numbers: those with another range than from 0 on. */
const RANGES = { retries: [-1, 2147483647], deadlen: [-1, Number.MAX_SAFE_INTEGER], donelen: [-1, Number.MAX_SAFE_INTEGER], "backoff-jitter": [0, 100], maxpayload: [0, 536870912], rate: [0, 1000000], grouprate: [0, 1000000], errors: [0, 64] };

/** The settings as fields of a question, the frequent ones first. */
function settingFields(info) {
  const frequent = ["retries", "lease", "maxlen", "rate", "rate-period"];
  const others = SETTINGS.filter((name) => !frequent.includes(name));
  return [...frequent, ...others].filter((name) => Number.isFinite(info[name]) || (TEXTS[name] && typeof info[name] === "string")).map((name) => ({
    name, label: name, was: info[name], more: !frequent.includes(name),
    ...(TEXTS[name] ? { value: info[name], ...TEXTS[name], parse: (words) => words.trim() || null } : TIMES.has(name) ? { value: typedSpan(info[name]), hint: SPAN_HINT, parse: time } : { value: info[name], parse: number(...RANGES[name] ?? [0, Number.MAX_SAFE_INTEGER]) }),
  }));
}

/** Settings for which a number means none or all. */
function meaning(field, value) {
  const none = ["ttl", "maxlen", "maxinflight", "maxpayload", "rate", "rate-period", "grouprate", "grouprate-period", "groupinflight", "maxlease"];
  if (value === 0 && ["dedupe", "retain", "delay"].includes(field)) return "none";
  if (value === 0 && field === "deadttl") return "for ever";
  if (value === 0 && none.includes(field)) return "no limit";
  if (value === -1) return field === "retries" ? "no limit" : "all";
  return null;
}

/** What the median, 95 and 99 of 100 took at most; nothing if nothing was measured. */
function quantiles(name, bounds) {
  const [median] = bounds ?? [null];
  return median === null ? [[name, "–"]] : ["median", "95 %", "99 %"].map((words, place) => [`${name}, ${words}`, atMost(bounds[place])]);
}

