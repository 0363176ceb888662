// Queues that are selected in the list, and paused or resumed together.

import { actions } from "./actions.js";
import { el, show, text } from "./dom.js";
import { many, param, shown } from "./format.js";

export function queueSelection(shared) {
  const acts = actions(shared, {});
  /** Their parameters of the API, by a key. */
  const selected = new Map();
  const choices = [["Pause", "pauseQueues"], ["Resume", "resumeQueues"]].map(([verb, action]) => ({
    verb, button: el("button", { type: "button", class: "write", hidden: true, click: () => acts[action]([...selected.values()]) }),
  }));

  function draw() {
    for (const { verb, button } of choices) {
      show(button, selected.size > 0);
      text(button, `${verb} ${many(selected.size, "queue")}…`);
    }
  }

  /** The box of a row. */
  function box(row) {
    const queue = param(row, "queue");
    const change = ({ target }) => {
      if (target.checked) selected.set(JSON.stringify(queue), queue);
      else selected.delete(JSON.stringify(queue));
      draw();
    };
    return el("label", { class: "write select" }, el("input", { type: "checkbox", "aria-label": `Select ${shown(row, "queue")}`, change }));
  }

  /** Forgets those that the list does not show any more. */
  function keep(rows) {
    const keys = new Set(rows.map((row) => JSON.stringify(param(row, "queue"))));
    for (const key of selected.keys()) if (!keys.has(key)) selected.delete(key);
    draw();
  }
  return { buttons: choices.map(({ button }) => button), box, keep };
}
