// What is unusual about a queue, in words. The server of the page decides what is: a queue can have several conditions.

import { el, list, set, text } from "./dom.js";
import { address, count, distance, many, now, param, shown, span, visible } from "./format.js";

/** The condition whose messages are worth a look: those that are dead. */
export const DYING = "messages die";
export const DEAD = "dead";
const HELD = "groups held";
const LATE = "late";
const OCCUPIED = "at its limit in flight";
const PAUSED = "groups paused";
/** The tab that shows what a condition is about. */
const TABS = { [DYING]: "dead", [DEAD]: "dead", [LATE]: "consumers", [OCCUPIED]: "consumers", [HELD]: "groups", [PAUSED]: "groups" };
const WHY = { paused: ["is paused until it is resumed", "is paused, resumes"], rate: ["", "is at its rate, delivers again"], limit: ["is at its limit of messages in flight or waiting for a retry"] };

/** More about a condition than its name. */
const MORE = {
  "forwarding fails": (info) => info["forward-error"] ?? info["deadforward-error"] ?? "",
  full: (info) => `${many(info.maxlen, "message")} at most, pushes are refused`,
  "no consumer": (info) => `ready for ${span(info["oldest-ready"])}, no client waits and nothing is in flight`,
  [DYING]: (info) => deathWords(info) || "a message has died in the last ten minutes",
  [DEAD]: (info) => `${many(info.dead, "message")}, kept until ${info.dead === 1 ? "it is" : "they are"} redriven or deleted${dropped(info)}`,
  [LATE]: (info) => `the oldest ready message waits for ${span(info["oldest-ready"])}${hangs(info) ? `; ${count(info.inflight)} in flight, the oldest for ${span(info["oldest-inflight"])}${holder(info)}` : ""}`,
  paused: (info) => (Number.isFinite(info["paused-until"]) ? `resumes ${distance(info["paused-until"])}` : "until it is resumed"),
  closed: (info) => (Number.isFinite(info["closed-until"]) ? `accepts messages again ${distance(info["closed-until"])}` : "pushes are refused until it is opened"),
  [HELD]: (info) => heldGroups(info) || `${many(info.ready, "ready message")} of groups that are paused, at their rate or at their limit`,
  [PAUSED]: (info) => count(info["paused-groups"]),
  "dead letters": () => "moved here from another queue, and nobody has taken one yet",
  [OCCUPIED]: (info) => `${many(info.maxinflight, "message")} at most, the oldest for ${span(info["oldest-inflight"])}${holder(info)}`,
  "at its rate limit": (info) => `delivers again ${distance(info["next-delivery"])}`,
};

/** How many died lately, and of what most of the newest ones, or where they are now; empty if that is not known. */
export function deathWords(row) {
  if (!row.deaths) return "";
  const { count: died, more, read, left, cause, "of-cause": ofCause } = row.deaths;
  // Of how many that is, if it may be far from all.
  const all = more && row.died > died ? `; ${count(row.died)} since it was created` : "";
  const number = `${more ? "at least " : ""}${count(died)} died in 10 min`;
  const target = shown(row.deaths, "moved-to").replace(/^QUEUE /, "");
  if (cause === null) return `${number}${target ? `, moved to ${target}` : ""}${all}`;
  const of = ofCause === died || left !== null ? "" : ` (${count(ofCause)} of ${read === died ? "them" : `the newest ${count(read)}`})`;
  // A table may have no room for more than the cause.
  return `${number}${left === null ? "" : `, ${count(left)} dead still`}: ${visible(cause)}${of}${all}`;
}

/** The queue to which the dead are moved, as a parameter of the API, if a field says so; null if there is none. */
export function targetQueue(object, field) {
  const word = "QUEUE ";
  const encoded = object[`${field}-base64`];
  if (encoded) return atob(encoded).startsWith(word) ? { "queue-base64": btoa(atob(encoded).slice(word.length)) } : null;
  return object[field]?.startsWith(word) ? { queue: object[field].slice(word.length) } : null;
}

/** The address of the messages of a queue that died lately: its dead ones, or its letters in the queue to which they were moved. */
export function diedAddress(row, queue) {
  const target = targetQueue(row.deaths ?? {}, "moved-to");
  const from = Object.fromEntries(Object.entries(queue).map(([name, value]) => [name.replace("queue", "from"), value]));
  return address("queue", target ? { ...target, tab: "letters", ...from } : { ...queue, tab: TABS[DYING] });
}

/** How the settings of a queue drop dead messages; empty if they do not. */
function dropped({ deadlen, deadttl }) {
  const limits = [deadttl > 0 && `for at most ${span(deadttl)}`, deadlen > 0 && `at most ${count(deadlen)} of them`].filter(Boolean);
  return limits.length > 0 ? `, ${limits.join(", ")}` : "";
}

/** Deliveries that run for this time are the likely cause of waiting, in ms, as on the command line. */
const LONG = 60000;

function hangs(info) {
  return info["oldest-inflight"] >= LONG;
}

/** Whether it is worth to know who holds the messages of a queue. */
export function isHeld({ info, conditions }) {
  return hangs(info) && conditions.some(([name]) => name === LATE || name === OCCUPIED);
}

/** The consumer that has held a message for longest, unless one without a name does. */
function holder({ consumers: [first] = [], "oldest-inflight": oldest }) {
  return first && now() - first.since >= oldest - 2000 ? `, with ${shown(first, "consumer")}` : "";
}

/** Which groups hold messages back, the paused ones first. */
function heldGroups({ held = [], "held-groups": number }) {
  const words = held.map((group) => `group ${shown(group, "group")} ${group.until === null ? WHY[group.why][0] : `${WHY[group.why][1]} ${distance(group.until)}`}`);
  return [...words, ...(number > held.length ? [`${number - held.length} more`] : [])].join("; ");
}

function conditionsOf(row) {
  if (row.error) return [[row.error, "bad"]];
  return row.conditions?.length ? row.conditions : [["open", "open"]];
}

/** The level of the most severe condition: `bad`, `warning` or nothing. */
export function levelOf(row) {
  const levels = conditionsOf(row).map(([, level]) => level);
  return ["bad", "warning"].find((level) => levels.includes(level)) ?? "";
}

/** An item for a condition of a queue: a link, if there is something to see. */
export function mark(name) {
  return el("li", {}, TABS[name] ? el("a") : null);
}

/** Fills in an item for a condition. */
export function fillMark(item, name, row, queue, words) {
  text(item.firstElementChild ?? item, words);
  if (TABS[name]) set(item.firstElementChild, "href", name === DYING ? diedAddress(row, queue) : address("queue", { ...queue, tab: TABS[name] }));
}

/** Fills a list with a mark for each condition. */
export function chips(node, row) {
  list(node, conditionsOf(row), ([name]) => name, ([name]) => mark(name), (item, [name, level]) => {
    fillMark(item, name, row, param(row, "queue"), name);
    set(item, "class", `chip ${level}`);
    set(item, "title", MORE[name]?.(row) ?? null);
  });
}

/** One sentence for each condition, and one for groups that are paused, since these need not hold a message back. */
export function sentences(row) {
  return [...conditionsOf(row), ...(row["paused-groups"] > 0 ? [[PAUSED, "note"]] : [])].map(([name, level]) => {
    const more = MORE[name]?.(row);
    return [`${name.replace(/^./, (letter) => letter.toUpperCase())}${more ? `: ${more}` : ""}`, level, name];
  });
}
