// One message with all its fields, and the search for an id.

import { read } from "./api.js";
import { actions } from "./actions.js";
import { el, list, pairs, set, show, text } from "./dom.js";
import { address, count, distance, instant, learnClock, many, param, shown, span, visible } from "./format.js";
import { when } from "./lists.js";
import { snippet, viewer } from "./payload.js";

const INSTANTS = ["created", "due", "deadline", "died", "done", "until", "last-run"];
const SPANS = ["lease", "ttl", "every", "offset"];
const FIELDS = ["state", "reason", "died", "due", "deadline", "attempt", "retries", "priority", "group", "created", "lease", "ttl", "every", "offset", "cron", "tz", "runs", "failed-runs", "last-run", "times-left", "done", "until", "receipt", "consumer", "next"];
const TRAVELLING = ["headers", "checkpoint", "errors"];
export const WORDS = { inflight: "in flight" };

export function message(params, shared) {
  const queue = param(params, "queue");
  const id = param(params, "id");
  const shownId = shown(params, "id");
  const acts = actions(shared, queue);
  const fields = el("dl", { class: "pairs message-fields" });
  const state = el("p", { class: "condition" });
  const error = el("section", { class: "trouble", hidden: true }, el("h2", {}, "Error"), el("pre"));
  const progress = el("progress", { max: "100", hidden: true, "aria-label": "Progress" });
  const payload = viewer("Payload");
  const result = viewer("Result");
  let found = {};
  const redrive = button("Redrive…", () => acts.redrive(id, shownId));
  const promote = button("Run now…", () => acts.promote(id, shownId));
  const reschedule = button("Reschedule…", () => acts.reschedule(id, shownId, found));
  const cancel = button("Cancel…", () => acts.cancel(id, shownId, found), "danger");
  const bar = el("div", { class: "buttons write", role: "group", "aria-label": "Actions on this message" }, redrive, promote, reschedule, cancel);
  const gone = el("p", { class: "empty", hidden: true }, "The queue has no message of this id now: it was completed or removed, or never pushed.");
  const there = el("div", {}, bar, error, progress, payload.node, result.node, fields);
  const node = el("div", { class: "message" },
    el("nav", { class: "crumbs", "aria-label": "Path" }, el("a", { href: "#/" }, "Queues"), el("span", { "aria-hidden": "true" }, " / "), el("a", { href: address("queue", queue) }, shown(params, "queue"))),
    el("div", { class: "head" }, el("h1", { class: "name" }, shownId)), state, gone, there);

  function button(words, click, kind = "") {
    return el("button", { type: "button", class: kind, click }, words);
  }

  async function refresh() {
    let answer;
    try {
      answer = await read("message", { ...queue, ...id });
    } catch (problem) {
      if (problem.status !== 404) throw problem;
    }
    show(gone, !answer);
    show(there, Boolean(answer));
    show(state, Boolean(answer));
    if (!answer) return;
    found = answer.message;
    learnClock(answer.now);
    const [words, at] = when(found);
    text(state, [`${WORDS[found.state] ?? found.state}`.replace(/^./, (letter) => letter.toUpperCase()), words].filter(Boolean).join(" · "));
    set(state, "title", at ? instant(at) : null);
    const waits = found.state === "delayed" || found.state === "ready";
    show(redrive, found.state === "dead");
    show(promote, found.state === "delayed");
    show(reschedule, waits);
    text(cancel, found.state === "done" ? "Forget…" : "Cancel…");
    show(error, "error" in found || "error-base64" in found);
    text(error.lastElementChild, typeof found.error === "string" ? visible(found.error) : shown(found, "error"));
    const others = Object.keys(found).map((field) => field.replace(/-base64$/, "")).filter((field) => !FIELDS.includes(field) && !["id", "payload", "payload-size", "error", "result", ...TRAVELLING].includes(field));
    const names = [...FIELDS, ...others].filter((field) => field in found || `${field}-base64` in found);
    pairs(fields, [...names.filter((field) => !(field === "next" && found.next === 0)).map((field) => entry(field, found)), ...travelling(found)]);
    const percent = percentOf(found.checkpoint);
    show(progress, percent !== null);
    set(progress, "value", percent);
    payload.update(found, "payload", found["payload-size"]);
    result.update(found, "result");
  }
  return { kind: "message", title: shownId, node, read: refresh };
}

/** What travels with a message: its headers, its checkpoint, and the errors of past attempts. */
function travelling(found) {
  const headers = found.headers ?? {};
  const entries = Object.keys(headers).map((name) => [`header ${visible(name)}`, shown(headers, name)]);
  if ("checkpoint" in found || "checkpoint-base64" in found) entries.push(["checkpoint", shown(found, "checkpoint")]);
  (found.errors ?? []).forEach(([attempt, at, words], nth) => entries.push([`error ${nth + 1}, attempt ${attempt}`, `${distance(at)}: ${shown({ words }, "words")}`, instant(at)]));
  return entries;
}

/** The progress in percent that a checkpoint tells: a number from 0 to 100, or JSON with such a number as `progress`. */
function percentOf(checkpoint) {
  if (typeof checkpoint !== "string" || checkpoint.trim() === "") return null;
  try {
    const value = JSON.parse(checkpoint);
    const percent = typeof value === "object" ? value?.progress : value;
    return Number.isFinite(percent) && percent >= 0 && percent <= 100 ? percent : null;
  } catch {
    return null;
  }
}

function entry(field, found) {
  const value = found[field];
  if (INSTANTS.includes(field) && Number.isFinite(value)) return [field, `${distance(value)} (${instant(value)})`];
  if (SPANS.includes(field) && Number.isFinite(value)) return [field, field === "ttl" && value === 0 ? "no limit" : span(value), `${value} ms`];
  if (field === "retries" && value < 0) return [field, "no limit"];
  if (field === "next") return [field, "another message takes its place after this delivery"];
  if (typeof value === "number") return [field, count(value)];
  if (value === null) return [field, "–"];
  return [field, WORDS[value] ?? shown(found, field)];
}

/** Messages of an id in all queues. */
export function search(params) {
  const items = el("ol", { class: "messages" });
  const status = el("p", { role: "status" }, "Searching…");
  const node = el("div", {}, el("nav", { class: "crumbs", "aria-label": "Path" }, el("a", { href: "#/" }, "Queues")),
    el("div", { class: "head" }, el("h1", { class: "name" }, `Search: ${shown(params, "id")}`)), status, items);

  async function refresh() {
    const answer = await read("search", param(params, "id"));
    learnClock(answer.now);
    const part = answer.searched < answer.queues ? ` Only ${count(answer.searched)} of ${many(answer.queues, "queue")} were searched in time.` : "";
    text(status, `${answer.found.length === 0 ? `No message has this id in ${many(answer.queues, "queue")}.` : `${many(answer.found.length, "message")} in ${many(answer.queues, "queue")}.`}${part}`);
    list(items, answer.found, (found) => JSON.stringify(param(found, "queue")),
      (found) => el("li", {}, el("div", { class: "line-one" }, el("a", { href: address("message", { ...param(found, "queue"), ...param(found, "id") }) }, `${shown(found, "queue")} / ${shown(found, "id")}`), el("span", { class: "when" })), el("p", { class: "snippet" })),
      (item, found) => {
        text(item.firstElementChild.lastElementChild, WORDS[found.state] ?? found.state);
        set(item.firstElementChild.lastElementChild, "class", `when ${found.state}`);
        text(item.lastElementChild, snippet(found, "payload"));
      });
  }
  return { kind: `search ${JSON.stringify(params)}`, title: "Search", node, read: refresh };
}
