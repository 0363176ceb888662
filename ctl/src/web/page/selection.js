// Messages of a list that are selected, and what is done with them together: one way for all states.

import { actions, removal } from "./actions.js";
import { el, show, text } from "./dom.js";
import { count, param, shown } from "./format.js";

/** What is done with selected messages of a state, besides removing them: an action, and the words of its button. */
const BURY = ["burySome", (number) => `Bury ${number} selected…`];
const SOME = {
  ready: [BURY],
  delayed: [["promoteSome", (number) => `Run ${number} selected now…`], BURY],
  inflight: [["giveBackSome", (number) => `Give ${number} selected back…`]],
  dead: [["redriveSome", (number) => `Redrive ${number} selected…`]],
  letters: [["sendBackSome", (number) => `Send ${number} selected back…`]],
};

/**
 * The bar above a list of messages of a state, and the boxes of its items. `others` are buttons that are shown while nothing is
 * selected.
 */
export function selection(queue, state, shared, others = []) {
  const acts = actions(shared, queue);
  const selected = new Set();
  let messages = [];
  const all = el("input", { type: "checkbox", change: () => selectAll(all.checked) });
  const summary = el("p", { class: "dim" });
  const chosen = () => messages.filter((message) => selected.has(keyOf(message)));
  const some = [...(SOME[state] ?? []), ["cancelSome", (number) => `${removal(state)} ${number} selected…`, "danger"]].map(([action, words, kind = ""]) => ({
    words, button: el("button", { type: "button", class: kind, click: () => acts[action](chosen(), state) }),
  }));
  const bar = el("div", { class: "bulk" }, el("label", { class: "write" }, all, " All shown"), summary,
    el("div", { class: "buttons write", role: "group", "aria-label": "Actions on these messages" }, some.map(({ button }) => button), others));

  function box(message) {
    const check = el("input", { type: "checkbox", "aria-label": `Select ${shown(message, "id")}`, change: () => { selected[check.checked ? "add" : "delete"](keyOf(message)); drawBar(); } });
    return el("label", { class: "write select" }, check);
  }

  /** Shows whether the message of an item is selected. */
  function fill(item, message) {
    item.lastElementChild.firstElementChild.checked = selected.has(keyOf(message));
  }

  function selectAll(isOn) {
    selected.clear();
    if (isOn) for (const message of messages) selected.add(keyOf(message));
    for (const check of bar.parentNode.querySelectorAll(".select input")) check.checked = isOn;
    drawBar();
  }

  /** Forgets those that the list does not show any more. */
  function draw(listed, words) {
    messages = listed;
    const keys = new Set(messages.map(keyOf));
    for (const key of selected) if (!keys.has(key)) selected.delete(key);
    show(bar, messages.length > 0);
    text(summary, words);
    drawBar();
  }

  function drawBar() {
    const number = selected.size;
    all.checked = number > 0 && number === messages.length;
    all.indeterminate = number > 0 && number < messages.length;
    for (const { button, words } of some) {
      show(button, number > 0);
      text(button, words(count(number)));
    }
    for (const button of others) show(button, number === 0);
  }
  return { bar, summary, box, fill, draw };
}

/** What tells a message from the others of its queue, and its deliveries from each other. */
export function keyOf(message) {
  return JSON.stringify([param(message, "id"), message.receipt ?? message["receipt-base64"]]);
}
