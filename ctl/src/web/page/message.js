// One message with all its fields, and the search for an id.

import { read, readBytes } from "./api.js";
import { actions, removal } from "./actions.js";
import { el, list, pairs, set, show, text, whole } from "./dom.js";
import { WHOLE } from "./fields.js";
import { address, count, distance, exactSpan, instant, learnClock, param, shown, visible } from "./format.js";
import { asLeft } from "./keys.js";
import { asItDied, reason, when } from "./lists.js";
import { viewer } from "./payload.js";

const INSTANTS = ["created", "due", "deadline", "died", "done", "until", "last-run"];
const SPANS = ["lease", "ttl", "retain", "every", "offset"];
const FIELDS = ["state", "reason", "died", "due", "deadline", "attempt", "retries", "priority", "group", "created", "lease", "ttl", "retain", "every", "offset", "cron", "tz", "runs", "failed-runs", "last-run", "times-left", "done", "until", "receipt", "consumer", "next"];
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
  const progress = el("label", { class: "progress", hidden: true }, el("span"), el("progress", { max: "100" }));
  const name = shownId.replace(/[^\w.-]+/g, "_").slice(0, 80);
  const payload = viewer("Payload", () => download({ ...queue, ...id }, name));
  const result = viewer("Result", () => download({ ...queue, ...id }, name));
  const checkpoint = viewer("Checkpoint");
  const headers = el("section", { class: "travelling", hidden: true }, el("h2", {}, "Headers"), el("dl", { class: "pairs" }));
  const errors = el("section", { class: "trouble", hidden: true }, el("h2", {}, "Errors of past attempts"), el("ol", { class: "errors" }));
  let found = {};
  const redrive = button("Redrive…", () => acts.redrive(id, shownId));
  const sendBack = button("Send back…", () => acts.sendBackSome([found]));
  const promote = button("Run now…", () => acts.promote(id, shownId));
  const reschedule = button("Reschedule…", () => acts.reschedule(id, shownId, found));
  const giveBack = button("Give back…", () => acts.giveBack(found, shownId));
  const bury = button("Bury…", () => acts.bury(id, shownId, found));
  const cancel = button("Cancel…", () => acts.cancel(id, shownId, found), "danger");
  const again = button("Edit and push again…", () => acts.pushAgain(shownId, found));
  const bar = el("div", { class: "buttons write", role: "group", "aria-label": "Actions on this message" }, redrive, sendBack, promote, giveBack, reschedule, again, bury, cancel);
  const gone = el("p", { class: "empty", hidden: true }, "The queue has no message of this id now: it was completed or removed, or never pushed, or it died and was moved to another queue. A search for the id looks in all queues.");
  const there = el("div", {}, bar, error, errors, progress, payload.node, result.node, headers, checkpoint.node, fields);
  const node = el("div", { class: "message" },
    el("nav", { class: "crumbs", "aria-label": "Path" }, el("a", { href: asLeft("#/") }, "Queues"), el("span", { "aria-hidden": "true" }, " / "), el("a", { href: asLeft(address("queue", queue)) }, shown(params, "queue"))),
    el("div", { class: "head" }, el("h1", { class: "name" }, whole(shownId))), state, gone, there);

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
    text(state, [`${WORDS[found.state] ?? found.state}`.replace(/^./, (letter) => letter.toUpperCase()), deathOf(found), words].filter(Boolean).join(" · "));
    set(state, "title", at ? instant(at) : null);
    const waits = found.state === "delayed" || found.state === "ready";
    show(redrive, found.state === "dead");
    show(sendBack, waits && found.headers?.["dq-reason"] !== undefined);
    show(promote, found.state === "delayed");
    show(reschedule, waits);
    show(giveBack, found.state === "inflight");
    show(bury, waits || found.state === "inflight");
    show(again, found.payload !== undefined || found["payload-base64"] !== undefined);
    again.disabled = found["payload-size"] > WHOLE;
    set(again, "title", again.disabled ? "The payload is too large to be edited here: dqctl get QUEUE ID --payload prints it." : null);
    text(cancel, `${removal(found.state)}…`);
    // The last error is among those of all attempts, if these are kept.
    show(error, !found.errors?.length && ("error" in found || "error-base64" in found));
    text(error.lastElementChild, typeof found.error === "string" ? visible(found.error) : shown(found, "error"));
    const others = Object.keys(found).map((field) => field.replace(/-base64$/, "")).filter((field) => !FIELDS.includes(field) && !["id", "payload", "payload-size", "error", "result", "lease-expired", ...TRAVELLING].includes(field));
    const names = [...FIELDS, ...others].filter((field) => field in found || `${field}-base64` in found);
    pairs(fields, names.filter((field) => !(field === "next" && found.next === 0)).map((field) => linked(field) ?? entry(field, found)));
    const percent = percentOf(found.checkpoint);
    show(progress, percent !== null);
    text(progress.firstElementChild, `Checkpoint: ${percent} %`);
    set(progress.lastElementChild, "value", percent ?? 0);
    payload.update(found, "payload", found["payload-size"]);
    result.update(found, "result");
    checkpoint.update(found, "checkpoint");
    drawTravelling();
  }

  /** A consumer, a group or a batch leads to its messages. */
  function linked(field) {
    const tab = { consumer: "inflight", batch: "batches", group: ["done", "inflight", "delayed", "dead"].find((state) => state === found.state) ?? "ready" }[field];
    return tab && [field, shown(found, field), null, address("queue", { ...queue, tab, ...param(found, field) })];
  }

  function drawTravelling() {
    const named = Object.keys(found.headers ?? {});
    show(headers, named.length > 0);
    pairs(headers.lastElementChild, named.map((header) => [visible(header), header === "dq-died" ? `${shown(found.headers, header)} (${instant(Number(found.headers[header]))})` : shown(found.headers, header)]));
    const past = [...(found.errors ?? [])].reverse();
    show(errors, past.length > 0);
    list(errors.lastElementChild, past.map((one, nth) => [`${nth} ${one[0]} ${one[1]}`, one]), ([key]) => key,
      () => el("li", {}, el("p", { class: "dim" }), el("pre")),
      (item, [, [attempt, at, words]]) => {
        text(item.firstElementChild, `Attempt ${attempt}, ${distance(at)}`);
        set(item.firstElementChild, "title", instant(at));
        text(item.lastElementChild, visible(words));
      });
  }
  return { kind: `message ${JSON.stringify(id)}`, title: shownId, node, read: refresh };
}

/** Why a message died, here or in the queue that it was moved from; empty if it did not. */
function deathOf(message) {
  const dead = asItDied(message);
  if (!dead.reason) return "";
  return dead.queue ? `died in ${visible(dead.queue)}: ${reason(dead)}` : reason(dead);
}

/** Saves the whole payload as a file. */
async function download(params, name) {
  const bytes = await readBytes("payload", params);
  const href = URL.createObjectURL(new Blob([bytes]));
  el("a", { href, download: name }).click();
  URL.revokeObjectURL(href);
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
  if (SPANS.includes(field) && Number.isFinite(value)) return [field, field === "ttl" && value === 0 ? "no limit" : exactSpan(value), `${value} ms`];
  if (field === "retries" && value < 0) return [field, "no limit"];
  if (field === "next") return [field, "another message takes its place after this delivery"];
  if (typeof value === "number") return [field, count(value)];
  if (value === null) return [field, "–"];
  if (field === "reason") return [field, reason(found), value];
  return [field, WORDS[value] ?? shown(found, field)];
}
