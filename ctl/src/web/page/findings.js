// What `dqctl doctor` finds, for the overview: in one line until somebody opens it, unless something critical is there. Queues of which
// the same was found are one line, which opens on a click.

import { read } from "./api.js";
import { advise } from "./command.js";
import { deathWords, diedAddress } from "./condition.js";
import { el, list, set, show, text } from "./dom.js";
import { address, count, distance, many, param, shown as named } from "./format.js";

/** How often it is asked for, in ms. It looks less often if a look takes long. */
const EVERY = 10000;
/** How long to wait before it is asked whether a look has ended, in ms. */
const PAUSE = 500;
/** Lines that are shown until somebody asks for all: more would leave no room for the queues. */
const FEW = 3;
/** Queues of the same check and severity from which on they are one line, and how many of them it names. */
const SEVERAL = 3;
const NAMED = 3;
/** What the page can do about a check, and in which tab. */
const HERE = {
  paused: ["Resume it here"], closed: ["Open it here"], dead: ["Its dead messages", "dead"], "dead-full": ["Its dead messages", "dead"], dying: ["Its dead messages", "dead"], stuck: ["Its consumers", "consumers"],
  "group": ["Its groups", "groups"],
  full: ["Its limits", "details"], forward: ["Its settings", "details"], deadforward: ["Its settings", "details"], batch: ["Its batches", "batches"],
};
/** Those whose advice is to look at something, which the page shows although it may change nothing. */
const LOOKS = new Set(["dead", "dead-full", "dying"]);
/** The advice about a check without the command that shows what the page shows. */
const ADVICE = { "no-consumer": "start its consumers" };
const SEVERITIES = [["critical", "bad"], ["warning", "warning"], ["note", "note"], ["not checked", "note"]];

/** What was found: of deaths what the page has counted, otherwise the words of the doctor. */
function whatOf({ what, deaths, ...row }) {
  return deathWords({ ...row, deaths }) || what;
}

/** The name of a program stays as it is typed. */
function sentence(words) {
  return `${words.replace(/^(?!redis-cli|dqctl)./, (letter) => letter.toUpperCase())}.`;
}

function fillSeverity(node, { severity }) {
  text(node, sentence(severity).slice(0, -1));
  set(node, "class", SEVERITIES.find(([known]) => known === severity)[1]);
}

/** `select` selects queues in the list. */
export function findings(shared, select) {
  const line = el("span");
  const summary = el("summary", {}, line);
  const items = el("ul");
  const more = el("button", { type: "button", class: "quiet", click: () => { showsAll = true; draw(all); items.children[FEW]?.querySelector("a, summary")?.focus(); } });
  const folder = el("details", { class: "findings", hidden: true }, summary, items, more);
  const age = el("span", { class: "dim" });
  const again = el("button", { type: "button", class: "small", hidden: true, click: () => look({ again: 1 }) }, "Look again");
  const node = el("div", { class: "doctor" }, folder, el("div", { class: "looked" }, age, again));
  let showsAll = false;
  let all = [];
  let asked = 0;
  let looked = NaN;
  let isLooking = false;
  let failed = "";
  let isNew = true;

  /** Reads the findings now and then. That they cannot be read is no reason to show nothing else. */
  async function refresh() {
    drawAge();
    if (Date.now() - asked >= EVERY) await look({});
  }

  /** Asks until nothing is looked for any more, such as what a change has made of the findings. */
  async function look(how) {
    if (isLooking) return;
    isLooking = true;
    drawAge();
    try {
      for (let answer = await read("doctor", how); ; answer = await read("doctor")) {
        failed = "";
        if (answer.findings) {
          looked = answer.looked;
          draw(answer.findings);
        }
        if (!answer.looking || !node.isConnected) break;
        drawAge();
        await new Promise((go) => { setTimeout(go, PAUSE); });
      }
    } catch (problem) {
      failed = problem.message;
    }
    isLooking = false;
    asked = Date.now();
    drawAge();
  }

  function drawAge() {
    const known = Number.isFinite(looked) ? `looked ${distance(looked)}` : "";
    const doing = isLooking ? known ? "looking again…" : "the doctor is looking…" : failed && `the doctor could not look: ${failed}`;
    text(age, [doing, known].filter(Boolean).join(", ").replace(/^./, (letter) => letter.toUpperCase()));
    show(again, known !== "" || failed !== "");
    set(again, "aria-disabled", isLooking ? "true" : null);
  }

  function draw(found) {
    all = found;
    const subjects = new Map(found.toReversed().map((one) => [subjectOf(one, found), one]));
    const numbers = SEVERITIES.map(([severity]) => [[...subjects.values()].filter((one) => one.severity === severity).length, severity]);
    const worst = SEVERITIES.find(([severity]) => found.some((one) => one.severity === severity))?.[1] ?? "note";
    show(folder, true);
    set(folder, "class", `findings ${found.length > 0 ? worst : "none"}`);
    const words = { critical: (number) => `${count(number)} critical`, warning: (number) => many(number, "warning"), note: (number) => many(number, "note"), "not checked": (number) => `${count(number)} not checked` };
    text(line, `Doctor: ${numbers.filter(([number]) => number > 0).map(([number, severity]) => words[severity](number)).join(", ") || "nothing found"}`);
    if (isNew && found.length > 0) folder.open = worst === "bad" && !matchMedia("(max-width: 680px)").matches;
    isNew = false;
    const lines = linesOf(found.filter((one) => one.severity !== "not checked"));
    const few = showsAll ? lines : lines.slice(0, FEW);
    show(more, few.length < lines.length);
    text(more, `${lines.length - few.length} more`);
    list(items, few, ([key]) => key, ([, ...line]) => (line.length > 1 ? makeFold() : make(line[0][0])), (item, [, ...line]) => (line.length > 1 ? fillFold(item, line) : fill(item, line[0])));
  }

  /** What a finding is about. Those about no queue and all servers have nothing in common. */
  function subjectOf(one, found) {
    return one.queue === undefined || one.severity === "not checked" ? `${found.indexOf(one)} ${one.server ?? ""}` : JSON.stringify(param(one, "queue"));
  }

  /**
   * Lines for people, each a key and the findings about its queues, in the place of the most important one: a line for all queues of the
   * same check and severity, if they are several, and else one for what is found about a queue, since that often has one cause.
   */
  function linesOf(found) {
    const kindOf = (one) => (one.kind ? `${one.severity} ${one.check}` : null);
    const queues = new Map();
    for (const one of found) queues.set(kindOf(one), (queues.get(kindOf(one)) ?? new Set()).add(subjectOf(one, found)));
    const lines = new Map();
    for (const one of found) {
      const subject = subjectOf(one, found);
      const key = kindOf(one) && queues.get(kindOf(one)).size >= SEVERAL ? kindOf(one) : subject;
      const line = lines.get(key) ?? new Map();
      lines.set(key, line.set(subject, [...(line.get(subject) ?? []), one]));
    }
    return [...lines].map(([key, line]) => [key, ...line.values()]);
  }

  function makeFold() {
    const queues = () => open.line.map(([one]) => param(one, "queue"));
    const open = el("details", { class: "fold", toggle: () => fillFold(open.parentNode, open.line) }, el("summary", {}, el("b"), " ", el("span"), " ", el("span", { class: "dim" })), el("ul"),
      el("button", { type: "button", class: "small write", click: () => select(queues()) }));
    return el("li", {}, open);
  }

  /** Several queues. What is said of each is shown once it is opened. */
  function fillFold(item, line) {
    const [open] = item.children;
    const [summary, each, button] = open.children;
    const [severity, what, why] = summary.children;
    const ones = line.map(([one]) => one);
    open.line = line;
    text(button, `Select these ${count(line.length)} queues`);
    fillSeverity(severity, ones[0]);
    const names = ones.slice(0, NAMED).map((one) => named(one, "queue")).join(", ");
    text(what, `${many(line.length, "queue")}: ${ones[0].kind}: ${names}${line.length > NAMED ? ` and ${count(line.length - NAMED)} more` : ""}.`);
    text(why, ones.every((one) => one.why === ones[0].why) ? sentence(ones[0].why) : "");
    list(each, open.open ? line : [], ([one]) => JSON.stringify(param(one, "queue")), ([one]) => make(one), fill);
  }

  function make(one) {
    const subject = one.queue !== undefined ? el("a", { href: address("queue", param(one, "queue")) }, named(one, "queue")) : el("span", {}, one.server ?? "All servers");
    return el("li", {}, el("b", {}), " ", subject, ": ", el("span", {}), " ", el("span", { class: "dim" }), " ", el("span", { class: "here" }));
  }

  function fill(item, group) {
    const [one] = group;
    const [severity, , what, advice, here] = item.children;
    fillSeverity(severity, one);
    text(what, `${group.map(whatOf).join("; ")}.`);
    const fix = (each) => (each.queue !== undefined && (shared.writes || LOOKS.has(each.check)) ? HERE[each.check] : null);
    advise(advice, [...new Set([one.why, ...group.filter((each) => !fix(each)).map((each) => ADVICE[each.check] ?? each.do)])].map(sentence).join(" "));
    const links = new Map(group.map(fix).filter(Boolean));
    list(here, [...links], ([words]) => words, ([words]) => el("a", {}, words),
      (link, [, tab]) => set(link, "href", tab === "dead" ? diedAddress(group.find((each) => each.deaths) ?? one, param(one, "queue")) : address("queue", { ...param(one, "queue"), ...(tab ? { tab } : {}) })));
  }
  return { node, read: refresh };
}
