// The contents of a queue: messages of a state, recurring messages, groups.

import { read } from "./api.js";
import { actions } from "./actions.js";
import { el, list, set, show, text } from "./dom.js";
import { address, bytes, count, distance, instant, many, param, shown, span } from "./format.js";
import { snippet } from "./payload.js";

/** Messages at first, how many more at a time, and at most. */
const STEP = 50;
const MOST = 500;
/** The most pages of messages in one step of a walk, and the pause after a long walk, in ms. */
const PAGES = 20;
const REST = 60000;

const EMPTY = {
  ready: "No message is ready: consumers have taken all that is due.",
  delayed: "No message waits for its due time or for a retry.",
  inflight: "No message is with a consumer.",
  dead: "No dead letters.",
  done: "No done message is kept.",
  schedules: "No recurring message. dqctl schedule declares one.",
};

/** Messages of a state, or recurring messages. */
export function messageList(queue, state, shared) {
  let wanted = STEP;
  const series = seriesOf(queue);
  const items = el("ol", { class: "messages" });
  const nothing = el("p", { class: "empty", hidden: true }, EMPTY[state]);
  const range = el("p", { class: "dim" });
  const more = el("button", { type: "button", hidden: true, click: () => { wanted = Math.min(MOST, wanted + STEP); shared.refresh(); } }, "Show more");
  const node = el("section", { "aria-label": state }, items, nothing, el("div", { class: "more" }, range, more));

  async function refresh() {
    const isSeries = state === "schedules";
    const answer = isSeries ? await series() : await read("messages", { ...queue, state, count: wanted });
    const messages = answer.messages.slice(0, wanted);
    list(items, messages, (message) => JSON.stringify(param(message, "id")), make, fill);
    show(nothing, messages.length === 0 && !answer.searching);
    const total = answer.total ?? answer.messages.length;
    show(more, messages.length < total && wanted < MOST);
    const part = messages.length < total ? `${count(messages.length)} of ${many(total, "message")}` : "";
    text(range, answer.searching ? "Searching all messages of the queue…" : part);
  }

  function make(message) {
    const id = param(message, "id");
    const redrive = el("button", { type: "button", class: "write small", click: () => actions(shared, queue).redrive(id, shown(message, "id")) }, "Redrive…", el("span", { class: "unseen" }, ` ${shown(message, "id")}`));
    return el("li", {},
      el("div", { class: "line-one" }, el("a", { href: address("message", { ...queue, ...id }) }, shown(message, "id")), el("span", { class: "when" })),
      el("p", { class: "error", hidden: true }), el("p", { class: "snippet" }), el("p", { class: "facts", hidden: true }),
      state === "dead" ? redrive : null);
  }

  function fill(item, message) {
    const [first, error, payload, last] = item.children;
    const known = facts(message);
    const [words, at] = when(message);
    text(first.lastElementChild, words);
    set(first.lastElementChild, "title", at ? instant(at) : null);
    const trouble = [message.reason ? `${REASONS[message.reason] ?? message.reason}` : "", oneLine(message)].filter(Boolean).join(": ");
    show(error, trouble !== "");
    text(error, trouble);
    text(payload, snippet(message, message.state === "done" ? "result" : "payload"));
    show(last, known !== "");
    text(last, known);
  }
  return { node, read: refresh };
}

/**
 * Reads the recurring messages, for which all messages of the queue have to be looked at: some pages for each reading, and
 * with a rest after a walk that took many.
 */
function seriesOf(queue) {
  let walk = { cursor: "0", messages: [], pages: 0 };
  let last = null;
  return async () => {
    const rests = last && walk.pages === 0 && last.pages > 1 && Date.now() - last.at < REST;
    for (let page = 0; page < PAGES && !rests; page += 1) {
      const answer = await read("schedules", { ...queue, cursor: walk.cursor, count: 500 });
      walk = { cursor: answer.cursor, messages: [...walk.messages, ...answer.messages], pages: walk.pages + 1 };
      if (walk.cursor === "0") {
        last = { messages: walk.messages, pages: walk.pages, at: Date.now() };
        walk = { cursor: "0", messages: [], pages: 0 };
        break;
      }
    }
    return { messages: (last ?? walk).messages, searching: last === null };
  };
}

/** The error, with a mark for each line break. */
function oneLine(message) {
  return shown(message, "error").replace(/(\\r)?\\n\s*/g, " ↵ ");
}

const REASONS = { rejected: "Rejected", expired: "Expired", retries: "Retries spent" };

/** The time that matters for a message in its state. */
export function when(message) {
  switch (message.state) {
    case "delayed": return [`due ${distance(message.due)}`, message.due];
    case "ready": return [`due ${distance(message.due)}`, message.due];
    case "inflight": return [`lease expires ${distance(message.deadline)}`, message.deadline];
    case "dead": return [`died ${distance(message.died)}`, message.died];
    case "done": return [`done ${distance(message.done)}`, message.done];
    default: return ["", null];
  }
}

function facts(message) {
  const facts = [];
  const rule = message.cron ? `${message.cron}${message.tz ? ` ${message.tz}` : ""}` : message.every ? `every ${span(message.every)}` : "";
  if (rule) facts.push(rule, many(message.runs ?? 0, "run"), `${count(message["failed-runs"] ?? 0)} failed`);
  if (message.attempt > 0) facts.push(message.retries < 0 ? many(message.attempt, "attempt") : `${many(message.attempt, "attempt")} of ${count((message.retries ?? 0) + 1)}`);
  if (message.priority) facts.push(`priority ${message.priority}`);
  if (message.group !== undefined || message["group-base64"] !== undefined) facts.push(`group ${shown(message, "group")}`);
  if (message["payload-size"] > 200) facts.push(bytes(message["payload-size"]));
  return facts.join(" · ");
}

/** The groups of a queue. */
export function groupList(queue) {
  const rows = el("tbody");
  const more = el("p", { class: "dim" });
  const table = el("table", { class: "groups" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Group"), ...["Waiting", "Occupied", "Oldest due"].map((name) => el("th", { class: "num", scope: "col" }, name)))), rows);
  const nothing = el("p", { class: "empty", hidden: true }, "No group has a message.");
  const node = el("section", { "aria-label": "groups" }, table, nothing, more);

  async function refresh() {
    const answer = await read("groups", { ...queue, count: 500 });
    list(rows, answer.groups, (group) => JSON.stringify(param(group, "group")),
      (group) => el("tr", {}, el("th", { scope: "row", class: "name" }, shown(group, "group")), el("td", { class: "num" }), el("td", { class: "num" }), el("td", { class: "num" })),
      (row, group) => {
        [count(group.waiting), count(group.occupied), distance(group["oldest-due"] ?? NaN)].forEach((value, index) => text(row.children[index + 1], value));
      });
    show(table, answer.groups.length > 0);
    show(nothing, answer.groups.length === 0);
    text(more, answer.cursor === "0" ? "" : "There are more groups: DQ.GROUPS lists all of them.");
  }
  return { node, read: refresh };
}
