// The contents of a queue: messages of a state, and recurring messages.

import { read } from "./api.js";
import { actions } from "./actions.js";
import { el, list, nameOf, set, show, text } from "./dom.js";
import { address, bytes, count, distance, exactSpan, instant, many, param, shown } from "./format.js";
import { snippet } from "./payload.js";
import { keyOf, selection } from "./selection.js";

/** Messages at first, how many more at a time, and at most. */
const STEP = 50;
const MOST = 500;
/** The most pages of messages in one step of a walk, and the pause after a long walk, in ms. */
const PAGES = 20;
const REST = 60000;

/** Why a list is empty, in words that are true of this queue. */
function empty(state, info, only) {
  if (only) return `No message of ${only.words} is ${STATES[state]}.`;
  const others = info.delayed + info.ready + info.inflight;
  const due = Number.isFinite(info["next-due"]) ? ` The next one is due ${distance(info["next-due"])}.` : "";
  switch (state) {
    case "ready":
      if (others === 0) return info.pushed > 0 ? "Nothing waits: the queue holds no message that is to be delivered." : "Nothing was pushed to this queue yet.";
      return `No message is due now.${due}`;
    case "delayed": return "No message waits for its due time or for a retry.";
    case "inflight": return info.paused ? "No message is with a consumer: the queue is paused." : "No message is with a consumer.";
    case "dead": return info.died > 0 ? "No dead message is here now." : "No message has died.";
    default: return info.retain > 0 ? "No done message is kept now." : "Done messages are not kept: RETAIN of this queue is 0.";
  }
}

const STATES = { ready: "ready", delayed: "delayed", inflight: "in flight", dead: "dead", done: "done" };

/** Messages of a state; of one group or of one consumer, if `only` says so. */
export function messageList(queue, state, shared, only) {
  let wanted = STEP;
  let answer = { messages: [] };
  const items = el("ol", { class: "messages" });
  const nothing = el("p", { class: "empty", hidden: true });
  const choice = selection(queue, state, shared);
  const more = el("button", { type: "button", hidden: true, click: () => { wanted = Math.min(MOST, wanted + STEP); shared.refresh(); } }, "Show more");
  const chosen = only ? el("p", { class: "only" }, `Only messages of ${only.words}. `, el("a", { href: address("queue", { ...queue, tab: state }) }, "Show all")) : null;
  if (!only) choice.summary.after(el("a", { href: address("queue", { ...queue, tab: state, find: 1 }) }, "Filter these messages"));
  const node = el("section", { "aria-label": state }, chosen, choice.bar, items, nothing, el("div", { class: "more" }, more));

  async function refresh() {
    answer = await read("messages", { ...queue, ...only?.param, state, count: wanted });
  }

  function draw({ info }) {
    const messages = answer.messages.slice(0, wanted);
    // How many messages a group or a consumer has is not known.
    const hasMore = only ? messages.length === wanted : messages.length < answer.total;
    const number = many(messages.length, "message");
    choice.draw(messages, !hasMore ? number : only ? `The first ${number}` : `The first ${count(messages.length)} of ${many(answer.total, "message")}`);
    list(items, messages, keyOf, (message) => makeItem(queue, message, choice.box(message)), (item, message) => {
      fillItem(item, message);
      choice.fill(item, message);
    });
    show(nothing, messages.length === 0);
    text(nothing, empty(state, info, only));
    show(more, hasMore && wanted < MOST);
  }
  return { node, read: refresh, draw };
}

/** An item of a list of messages; `more` is added at its end. */
export function makeItem(queue, message, more = null) {
  const id = param(message, "id");
  return el("li", {},
    el("div", { class: "line-one" }, el("a", { href: address("message", { ...queue, ...id }), title: shown(message, "id") }, nameOf(shown(message, "id"))), el("span", { class: "when" })),
    el("p", { class: "error", hidden: true }), el("p", { class: "snippet" }), el("p", { class: "facts", hidden: true }), more);
}

export function fillItem(item, message) {
  const [first, error, payload, last] = item.children;
  const known = facts(message);
  const [words, at] = when(message);
  text(first.lastElementChild, words);
  set(first.lastElementChild, "title", at ? instant(at) : null);
  const before = message["lease-expired"] ? "; error before: " : ": ";
  const dead = asItDied(message);
  const trouble = [dead.reason ? reason(dead) : "", oneLine(dead)].filter(Boolean).join(before);
  show(error, trouble !== "");
  text(error, trouble);
  text(payload, snippet(message, message.state === "done" ? "result" : "payload"));
  show(last, known !== "");
  text(last, known);
}

/** Recurring messages by their due times, so that the one that is late by most comes first. */
export function scheduleList(queue, shared) {
  const series = seriesOf(queue, shared);
  let answer = { messages: [] };
  const items = el("ol", { class: "messages" });
  const nothing = el("p", { class: "empty", hidden: true });
  const range = el("p", { class: "dim", role: "status" });
  const filter = el("input", { type: "search", id: "schedule-filter", placeholder: "Part of an id or a rule", autocomplete: "off", autocapitalize: "none", spellcheck: "false", input: () => draw() });
  const declare = el("button", { type: "button", class: "write above", click: () => actions(shared, queue).schedule() }, "Declare a schedule…");
  const tools = el("div", { class: "tools" }, el("div", { class: "field" }, el("label", { for: "schedule-filter" }, "Filter"), filter), range);
  const node = el("section", { "aria-label": "schedules" }, declare, tools, items, nothing);

  function make(message) {
    const id = param(message, "id");
    const run = el("button", { type: "button", class: "write small", click: () => actions(shared, queue).promote(id, shown(message, "id")) }, "Run now…", el("span", { class: "unseen" }, ` ${shown(message, "id")}`));
    const edit = el("button", { type: "button", class: "write small", click: () => actions(shared, queue).editSchedule(id, shown(message, "id")) }, "Edit…", el("span", { class: "unseen" }, ` ${shown(message, "id")}`));
    return makeItem(queue, message, el("div", { class: "buttons" }, run, edit));
  }

  async function refresh() {
    answer = await series();
  }

  function draw() {
    const part = filter.value.trim().toLowerCase();
    const fits = (message) => `${shown(message, "id")} ${ruleOf(message)}`.toLowerCase().includes(part);
    const chosen = answer.messages.filter(fits).sort((a, b) => a.due - b.due);
    const messages = chosen.slice(0, MOST);
    list(items, messages, keyOf, make, (item, message) => {
      fillItem(item, message);
      show(item.lastElementChild.firstElementChild, message.state === "delayed");
    });
    show(tools, answer.messages.length > 0);
    show(nothing, messages.length === 0);
    text(nothing, answer.searching ? "Searching all messages of the queue…" : part ? `No schedule has “${part}” in its id or rule.` : "No message of this queue recurs.");
    const cut = messages.length < chosen.length ? `The next ${count(messages.length)} of ` : "";
    text(range, `${cut}${many(chosen.length, "schedule")}${answer.searching ? ", searching…" : ""}`);
  }
  return { node, read: refresh, draw };
}

/**
 * Reads the recurring messages, for which all messages of the queue have to be looked at: some pages for each reading, and
 * with a rest after a walk that took many, unless something was changed since.
 */
function seriesOf(queue, shared) {
  let walk = { cursor: "0", messages: [], pages: 0 };
  let last = null;
  return async () => {
    const rests = last && last.changes === shared.changes && walk.pages === 0 && last.pages > 1 && Date.now() - last.at < REST;
    for (let page = 0; page < PAGES && !rests; page += 1) {
      const answer = await read("schedules", { ...queue, cursor: walk.cursor, count: 500 });
      const changes = walk.changes ?? shared.changes;
      walk = { changes, cursor: answer.cursor, messages: [...walk.messages, ...answer.messages], pages: walk.pages + 1 };
      if (walk.cursor === "0") {
        last = { messages: walk.messages, pages: walk.pages, at: Date.now(), changes: walk.changes };
        walk = { cursor: "0", messages: [], pages: 0 };
        break;
      }
    }
    return { messages: (last ?? walk).messages, searching: last === null };
  };
}

/** What `DEADFORWARD QUEUE` notes of how a message died in its former queue, unless it has an error of this one. */
export function asItDied(message) {
  const headers = message.headers ?? {};
  if (!headers["dq-reason"] || message.state === "dead" || "error" in message || "error-base64" in message) return message;
  const error = headers["dq-error"] ? { error: headers["dq-error"] } : {};
  return { reason: headers["dq-reason"], attempt: Number(headers["dq-attempts"]), queue: headers["dq-queue"], ...error };
}

/** The error, with a mark for each line break. Python writes the line that says most last; it comes first, as in the cause. */
function oneLine(message) {
  const lines = shown(message, "error").split(/(?:\\x0d)?\\x0a\s*/);
  const last = lines.findLastIndex((line) => line !== "");
  if (lines[0].startsWith("Traceback ") && last > 0) lines.unshift(...lines.splice(last));
  return lines.filter((line) => line !== "").join(" ↵ ");
}

/** Why a message is dead. A message that was never delivered has no consumer that could have rejected it. */
export function reason(message) {
  const words = { rejected: message.attempt === 0 ? "Buried" : "Rejected or buried", expired: "Its TTL has ended", retries: message["lease-expired"] ? "Retries used up, the last lease expired without an ack" : "Retries used up" };
  return words[message.reason] ?? message.reason;
}

/** The time that matters for a message in its state. */
export function when(message) {
  // A letter waits here, but what matters is that it died in its former queue.
  switch (message.died ? "dead" : message.state) {
    case "delayed": return [`due ${distance(message.due)}`, message.due];
    case "ready": return [`due ${distance(message.due)}`, message.due];
    case "inflight": return [`lease expires ${distance(message.deadline)}`, message.deadline];
    case "dead": return [`died ${distance(message.died)}`, message.died];
    case "done": return [`done ${distance(message.done)}`, message.done];
    default: return ["", null];
  }
}

function ruleOf(message) {
  if (message.cron) return `${message.cron}${message.tz ? ` ${message.tz}` : ""}`;
  return message.every ? `every ${exactSpan(message.every)}` : "";
}

function facts(message) {
  const facts = [];
  const rule = ruleOf(message);
  if (rule) facts.push(rule, many(message.runs ?? 0, "run"), `${count(message["failed-runs"] ?? 0)} failed`);
  const isLetter = message.from !== undefined || message["from-base64"] !== undefined;
  // The attempts of a letter are those of its former queue, and its retries those of this one.
  const isCounted = message.retries >= 0 && !isLetter;
  if (message.attempt > 0) facts.push(`${many(message.attempt, "attempt")}${isCounted ? ` of ${count(message.retries + 1)}` : ""}`);
  if (isLetter) facts.push(`from ${shown(message, "from")}`);
  if (message.priority) facts.push(`priority ${message.priority}`);
  if (message.group !== undefined || message["group-base64"] !== undefined) facts.push(`group ${shown(message, "group")}`);
  if (message.state === "inflight" && (message.consumer !== undefined || message["consumer-base64"] !== undefined)) facts.push(`consumer ${shown(message, "consumer")}`);
  if (message["payload-size"] > 200) facts.push(bytes(message["payload-size"]));
  return facts.join(" · ");
}
