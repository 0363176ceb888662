// One queue: its condition, charts, actions, and a tab for each state.

import { read } from "./api.js";
import { actions } from "./actions.js";
import { chart } from "./chart.js";
import { el, list, pairs, set, show, text } from "./dom.js";
import { address, bytes, count, distance, learnClock, many, param, rate, shown, span } from "./format.js";
import { groupList, messageList } from "./lists.js";
import { condition, depths, flows } from "./overview.js";

const TABS = [["ready", "Ready"], ["delayed", "Delayed"], ["inflight", "In flight"], ["dead", "Dead"], ["done", "Done"], ["schedules", "Schedules"], ["groups", "Groups"], ["details", "Details"]];
const TIMES = new Set(["lease", "maxlease", "delay", "ttl", "backoff-base", "backoff-max", "rate-period", "deadttl", "dedupe", "retain"]);
const SETTINGS = ["lease", "delay", "retries", "backoff-base", "backoff-max", "backoff-jitter", "ttl", "maxlen", "maxinflight", "maxpayload", "deadlen", "deadttl", "dedupe", "rate", "rate-period", "groupinflight", "grouporder", "errors", "forward", "retain", "donelen", "maxlease"];
const TOTALS = ["pushed", "duplicates", "delivered", "forwarded", "acked", "nacked", "given-back", "lease-expired", "died", "expired", "redriven", "cancelled", "rejected-full"];
const COUNTS = new Set(["delayed", "ready", "inflight", "dead", "done", "groups", "blocked", "known", "payload-bytes", "next-due", "oldest-ready", "waiting-clients", "oldest-inflight", "paused", "paused-until", "closed", "closed-until", "next-delivery", "forward-error", "forward-failing-since"]);

export function queue(params, shared) {
  const name = param(params, "queue");
  const shownName = shown(params, "queue");
  const acts = actions(shared, name);
  const state = el("p", { class: "condition" });
  const depth = chart("Messages", count);
  const flow = chart("Messages per second", rate);
  // One button for both, so that it keeps the focus.
  const pause = button("Pause…", () => (info.paused ? acts.resume() : acts.pause(info)));
  const redrive = button("Redrive…", () => acts.redriveMany(info));
  const promote = button("Run delayed now…", () => acts.promoteMany(info));
  const purge = button("Purge…", () => acts.purge(info, tab), "danger");
  const bar = el("div", { class: "buttons write", role: "group", "aria-label": "Actions on this queue" }, button("Push…", () => acts.push()), pause, redrive, promote, purge);
  const tabs = el("nav", { class: "tabs", "aria-label": "Contents of the queue" });
  const content = el("div");
  const node = el("div", { class: "queue" },
    el("nav", { class: "crumbs", "aria-label": "Path" }, el("a", { href: "#/" }, "Queues")),
    el("div", { class: "head" }, el("h1", { class: "name" }, shownName)), state, bar,
    el("div", { class: "charts" }, depth.node, flow.node), tabs, content);
  let info = {};
  let tab;
  let body;
  let isPlaced = false;
  choose(params.tab);

  /** Shows a tab. The rest of the view stays as it is, with the focus. */
  function choose(key) {
    tab = TABS.some(([known]) => known === key) ? key : "ready";
    body = tab === "details" ? details() : tab === "groups" ? groupList(name) : messageList(name, tab, shared);
    content.replaceChildren(body.node);
    for (const link of tabs.children) set(link, "aria-current", link.dataset.key === tab ? "page" : null);
  }

  function accept(view, next) {
    const isSame = view === "queue" && JSON.stringify(param(next, "queue")) === JSON.stringify(name);
    if (isSame) choose(next.tab);
    return isSame;
  }

  function button(words, click, kind = "") {
    return el("button", { type: "button", class: kind, click }, words);
  }

  async function refresh() {
    const shownBody = body;
    const [answer] = await Promise.all([read("queue", name), shownBody.read()]);
    info = answer.info;
    learnClock(answer.now);
    const [words, kind] = condition(info);
    const parts = [words.replace(/^./, (letter) => letter.toUpperCase())];
    if (Number.isFinite(info["oldest-ready"])) parts.push(`oldest ready message due ${span(info["oldest-ready"])} ago`);
    if (Number.isFinite(info["next-due"])) parts.push(`next delayed message ${distance(info["next-due"])}`);
    parts.push(`${many(info["waiting-clients"] ?? 0, "client")} waiting`, `${bytes(info["payload-bytes"])} of payloads`);
    if (info["forward-error"]) parts.push(`error: ${info["forward-error"]}`);
    text(state, parts.join(" · "));
    set(state, "class", `condition ${kind}`);
    text(pause, info.paused ? "Resume…" : "Pause…");
    redrive.disabled = !info.dead;
    promote.disabled = !info.delayed;
    purge.disabled = !(info.ready + info.delayed + info.inflight + info.dead + (info.done ?? 0));
    depth.update(depths(answer.history ?? [], info));
    flow.update(flows(answer.history ?? [], answer.rates));
    const kept = TABS.filter(([key]) => key === tab || (key !== "groups" || info.groups > 0) && (key !== "done" || info.done > 0 || info.retain > 0));
    list(tabs, kept, ([key]) => key,
      ([key, words]) => el("a", { href: address("queue", { ...name, tab: key }), "aria-current": key === tab ? "page" : null }, words, el("span", { class: "badge" })),
      (link, [key]) => {
        const number = key === "groups" ? info.groups : info[key];
        show(link.lastElementChild, Number.isFinite(number));
        text(link.lastElementChild, Number.isFinite(number) ? count(number) : "");
      });
    shownBody.draw?.(answer);
    // Once it is drawn: on a phone the tab may be beyond the edge.
    if (!isPlaced) requestAnimationFrame(() => tabs.querySelector("[aria-current]").scrollIntoView({ block: "nearest", inline: "center" }));
    isPlaced = true;
  }

  return { kind: `queue ${JSON.stringify(name)}`, title: shownName, node, read: refresh, accept };
}

/** Settings, totals, and how long deliveries take. */
function details() {
  const parts = ["Settings", "Totals since its creation", "Times since the server started"].map((title) => [title, el("dl", { class: "pairs" })]);
  const node = el("div", { class: "details" }, parts.map(([title, container]) => el("section", {}, el("h2", {}, title), container)));
  const [settings, totals, times] = parts.map(([, container]) => container);

  function draw({ info, stats }) {
    const known = Object.keys(info);
    const others = known.filter((field) => !SETTINGS.includes(field) && !TOTALS.includes(field) && !COUNTS.has(field));
    const value = (field) => (TIMES.has(field) ? span(info[field]) : typeof info[field] === "number" ? count(info[field]) : String(info[field] ?? "–"));
    pairs(settings, [...SETTINGS.filter((field) => field in info), ...others].map((field) => [field, meaning(field, info[field]) ?? value(field), String(info[field])]));
    pairs(totals, TOTALS.filter((field) => field in info).map((field) => [field, value(field)]));
    pairs(times, stats ? [...quantiles("delivered late by", stats.lateness), ...quantiles("run time", stats.runtime), ["pops without a message", count(stats["pops-empty"])], ["held back by the rate", span(stats["rate-limited-ms"] ?? 0)]] : []);
  }
  return { node, read: async () => undefined, draw };
}

/** Settings for which a number means none or all. */
function meaning(field, value) {
  const none = ["ttl", "maxlen", "maxinflight", "maxpayload", "rate", "deadttl", "dedupe", "retain", "maxlease"];
  if (value === 0 && none.includes(field)) return field === "dedupe" || field === "retain" ? "off" : "no limit";
  if (value === -1) return field === "retries" ? "no limit" : "all";
  return null;
}

function quantiles(name, histogram) {
  const all = histogram?.at(-1)?.[1] ?? 0;
  if (all === 0) return [[name, "–"]];
  return [["median", 0.5], ["95 %", 0.95], ["99 %", 0.99]].map(([words, share]) => {
    const bucket = histogram.find(([, number]) => number >= all * share);
    return [`${name}, ${words}`, bucket?.[0] == null ? "more than 70 min" : `at most ${span(bucket[0])}`];
  });
}

