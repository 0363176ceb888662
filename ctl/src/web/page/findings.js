// What `dqctl doctor` finds, for the overview: in one line until somebody opens it, unless something critical is there.

import { read } from "./api.js";
import { el, list, set, show, text } from "./dom.js";
import { address, many } from "./format.js";

/** How often it is asked for, in ms: the server of the page looks every half minute. */
const EVERY = 15000;
const SEVERITIES = [["critical", "bad"], ["warning", "warning"], ["note", "note"], ["not checked", "note"]];

export function findings() {
  const summary = el("summary");
  const items = el("ul");
  const node = el("details", { class: "findings", hidden: true }, summary, items);
  let asked = 0;
  let isNew = true;

  /** Reads the findings now and then. That they cannot be read is no reason to show nothing else. */
  async function refresh() {
    if (Date.now() - asked < EVERY) return;
    asked = Date.now();
    const answer = await read("doctor").catch(() => null);
    if (!answer?.findings) {
      asked = 0;
      return;
    }
    draw(answer.findings);
  }

  function draw(found) {
    const numbers = SEVERITIES.map(([severity]) => [found.filter((one) => one.severity === severity).length, severity]);
    const worst = SEVERITIES.find(([severity]) => found.some((one) => one.severity === severity))?.[1] ?? "note";
    show(node, found.length > 0);
    set(node, "class", `findings ${worst}`);
    const words = { critical: (number) => many(number, "critical finding"), warning: (number) => many(number, "warning"), note: (number) => many(number, "note"), "not checked": (number) => `${number} not checked` };
    text(summary, `Doctor: ${numbers.filter(([number]) => number > 0).map(([number, severity]) => words[severity](number)).join(", ")}`);
    if (isNew && found.length > 0) node.open = worst === "bad" && !matchMedia("(max-width: 680px)").matches;
    isNew = false;
    const shown = found.filter((one) => one.severity !== "not checked");
    list(items, shown.map((one, nth) => [`${nth} ${one.server ?? ""} ${one.queue ?? ""}`, one]), ([key]) => key, ([, one]) => make(one), (item, [, one]) => fill(item, one));
  }

  function make(one) {
    const subject = one.queue !== undefined ? el("a", { href: address("queue", { queue: one.queue }) }, one.queue) : el("span", {}, one.server ?? "All servers");
    return el("li", {}, el("b", {}), " ", subject, ": ", el("span", {}), " ", el("span", { class: "dim" }));
  }

  function fill(item, one) {
    const [severity, , what, advice] = item.children;
    const sentence = (words) => `${words.replace(/^./, (letter) => letter.toUpperCase())}.`;
    text(severity, sentence(one.severity).slice(0, -1));
    set(severity, "class", SEVERITIES.find(([known]) => known === one.severity)[1]);
    text(what, `${one.what}.`);
    text(advice, `${sentence(one.why)} ${sentence(one.do)}`);
  }
  return { node, read: refresh };
}
