// One batch: how far it is, what follows it, and its messages.

import { read } from "./api.js";
import { actions } from "./actions.js";
import { el, list, show, text } from "./dom.js";
import { address, count, instant, many, param, shown } from "./format.js";
import { fillItem, makeItem } from "./lists.js";
import { snippet } from "./payload.js";

/** Messages at first, how many more at a time, and at most. */
const STEP = 50;
const MOST = 500;
const WORDS = { inflight: "in flight" };

/** The message that follows a batch: its id, if it has one, and the beginning of its payload; null if nobody has said it. */
export function follower(item) {
  return item.closed ? [shown(item, "then-id"), snippet(item, "then")].filter(Boolean).join(": ") || "a message without a payload" : null;
}

export function batchView(queue, only, shared) {
  let wanted = STEP;
  let members = { messages: [] };
  let batch = null;
  const progress = el("progress", { max: "1", "aria-label": "Progress" });
  const state = el("p", { class: "dim" });
  const then = el("p", { class: "follows" });
  const name = shown(only.param, "batch");
  const cancel = el("button", { type: "button", class: "danger write", click: () => actions(shared, queue).cancelBatch(only.param, name, batch.left) }, "Cancel the batch…");
  const there = el("div", {}, progress, state, then, cancel);
  const items = el("ol", { class: "messages" });
  const nothing = el("p", { class: "empty", hidden: true });
  const range = el("p", { class: "dim" });
  const more = el("button", { type: "button", hidden: true, click: () => { wanted = Math.min(MOST, wanted + STEP); shared.refresh(); } }, "Show more");
  const node = el("section", { class: "batch", "aria-label": "batch" },
    el("p", { class: "only" }, `Only messages of ${only.words}. `, el("a", { href: address("queue", { ...queue, tab: "batches" }) }, "All batches")),
    there, items, nothing, el("div", { class: "more" }, range, more));

  async function refresh() {
    const [found, messages] = await Promise.all([read("batches", { ...queue, ...only.param }), read("messages", { ...queue, ...only.param, count: wanted })]);
    [batch, members] = [found.batches[0] ?? null, messages];
  }

  function draw() {
    show(there, batch !== null);
    if (batch) {
      progress.value = batch.total > 0 ? (batch.total - batch.left) / batch.total : 0;
      text(state, `${count(batch.total - batch.left)} of ${many(batch.total, "message")} ended: ${count(batch.acked)} acked, ${count(batch.dead)} dead, ${count(batch.cancelled)} cancelled · begun ${instant(batch.created)}`);
      text(then, follower(batch) === null ? "Open: nobody has said which message follows." : `Then: ${follower(batch)}`);
    }
    list(items, members.messages, (message) => JSON.stringify(param(message, "id")), (message) => makeItem(queue, message), (item, message) => {
      fillItem(item, message);
      const words = item.firstElementChild.lastElementChild;
      text(words, `${WORDS[message.state] ?? message.state} · ${words.textContent}`);
    });
    show(nothing, members.messages.length === 0);
    text(nothing, batch ? "None of its messages waits or is in flight. The dead ones are in the tab Dead." : "The batch has ended, or was never begun.");
    show(more, members.limited && members.messages.length === wanted && wanted < MOST);
    const searched = `the first ${many(members.looked, "message")} of the queue were looked at`;
    text(range, !members.limited ? "" : members.messages.length === wanted ? `The first ${count(wanted)} of its messages.` : `There may be more: ${searched}.`);
  }
  return { node, read: refresh, draw };
}
