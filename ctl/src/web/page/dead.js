// Dead messages: by cause, filtered, selected, and redriven or deleted together. The address has the conditions. So it is with letters, which
// died in another queue and go back to it, and without causes with messages of other states.

import { read } from "./api.js";
import { actions, verbOf } from "./actions.js";
import { el, list, set, show, text } from "./dom.js";
import { address, count, distance, instant, many, param, parseSpan, shown } from "./format.js";
import { fillItem, makeItem } from "./lists.js";
import { keyOf, selection } from "./selection.js";

/** Messages at first, how many more at a time, and at most. */
const STEP = 50;
const MOST = 500;
/** All dead messages are read for it, so it is done at most this share of the time. */
const SHARE = 20;
/** How long nothing is typed before a filter is used, in ms. */
const PAUSE = 250;

/** A parameter of the address, also in base64; null if it is not there. */
function named(params, name) {
  const found = param(params, name);
  return Object.values(found)[0] === undefined ? null : found;
}

/** The queue that letters come from as the queue of an address. */
function renamed(from) {
  return Object.fromEntries(Object.entries(from).map(([name, value]) => [name.replace("from", "queue"), value]));
}

export function deadList(queue, shared, params) {
  const { tab } = params;
  const of = tab === "dead" ? {} : { state: tab };
  const isNewestFirst = ["dead", "letters", "done"].includes(tab);
  const hasDied = tab === "dead" || tab === "letters";
  const find = hasDied ? {} : { find: 1 };
  let wanted = STEP;
  let answer = null;
  let asked = "";
  let readAt = 0;
  let typing = 0;
  /** What is chosen by a click: a cause, and the queue in which letters died, both as parameters of the API. */
  const conditions = { cause: named(params, "cause"), from: named(params, "from") };
  const fields = {
    text: field("text", "Text", "In id, error, payload or group"),
    group: field("group", "Group", "Its name"),
    older: field("older", hasDied ? "Dead for at least" : "Like this for at least", "30m, 2h, 7d"),
    attempts: field("attempts", "Attempts, at least", "3", "numeric"),
  };
  const wrong = el("p", { class: "dialog-error", role: "alert" });
  const causes = el("ul", { class: "causes", "aria-label": "Causes" });
  const others = el("p", { class: "dim", hidden: true });
  const bulk = {
    ...(hasDied ? { redrive: forAll("redrive") } : {}),
    ...(tab === "delayed" ? { promote: forAll("promote") } : {}),
    ...(tab === "ready" || tab === "delayed" ? { bury: forAll("bury") } : {}),
    delete: forAll("delete", "danger"),
  };
  const choice = selection(queue, tab, shared, Object.values(bulk));
  set(choice.summary, "role", "status");
  const origins = el("p", { class: "origins", hidden: true }, "They died in ", el("span", { role: "group", "aria-label": "Former queues" }), el("a", { hidden: true }), el("span", { class: "dim" }));
  const items = el("ol", { class: "messages" });
  const nothing = el("p", { class: "empty", hidden: true });
  const more = el("button", { type: "button", hidden: true, click: () => { wanted = Math.min(MOST, wanted + STEP); shared.refresh(); } }, "Show more");
  const tools = el("div", { class: "tools" }, Object.values(fields).map(({ node }) => node));
  const node = el("section", { class: "dead-list", "aria-label": tab }, tools, wrong, causes, others, origins, choice.bar, items, nothing, el("div", { class: "more" }, more));

  function forAll(what, kind = "") {
    return el("button", { type: "button", class: kind, click: () => actions(shared, queue).changeDead(what, filter()) });
  }

  function field(name, label, placeholder, inputmode = null) {
    const input = el("input", { type: "search", id: `dead-${name}`, value: params[name] ?? "", placeholder, inputmode, autocomplete: "off", autocapitalize: "none", spellcheck: "false", input: typed });
    return { input, node: el("div", { class: "field" }, el("label", { for: input.id }, label), input) };
  }

  /** Waits until nothing is typed for a moment: each filter reads all dead messages. */
  function typed() {
    clearTimeout(typing);
    typing = setTimeout(() => shared.refresh(), PAUSE);
    remember();
    filter();
  }

  /** The address follows, so that the way back and a shared link keep the conditions. */
  function remember() {
    const typedIn = Object.entries(fields).map(([name, { input }]) => [name, input.value.trim()]);
    const given = typedIn.filter(([, value]) => value !== "");
    history.replaceState(null, "", address("queue", { ...queue, tab, ...find, ...Object.fromEntries(given), ...conditions.cause, ...conditions.from }));
  }

  /** What the API selects by; null if a field cannot be understood, because fewer conditions would select more. */
  function filter() {
    const chosen = { ...of };
    const value = (name) => fields[name].input.value.trim();
    if (value("text")) chosen.text = value("text");
    if (value("group")) chosen.group = value("group");
    const older = value("older") ? parseSpan(value("older")) : undefined;
    const attempts = value("attempts") ? Number(value("attempts")) : undefined;
    const isCount = attempts === undefined || (Number.isInteger(attempts) && attempts >= 0);
    text(wrong, older === null ? `${hasDied ? "Dead" : "Like this"} for at least: a time with a unit, such as 30m or 2h.` : isCount ? "" : "Attempts: a whole number.");
    set(fields.older.input, "aria-invalid", older === null ? "true" : null);
    set(fields.attempts.input, "aria-invalid", isCount ? null : "true");
    const isUnderstood = older !== null && isCount;
    for (const button of Object.values(bulk)) button.disabled = !isUnderstood;
    if (!isUnderstood) return null;
    if (older !== undefined) chosen.older = older;
    if (attempts !== undefined) chosen.attempts = attempts;
    return { ...chosen, ...conditions.cause, ...conditions.from };
  }

  function asking() {
    const chosen = filter();
    return chosen && { ...queue, ...chosen, count: wanted };
  }

  async function refresh() {
    const question = asking();
    if (question === null) return;
    const key = JSON.stringify([question, shared.changes]);
    const rests = key === asked && answer && Date.now() - readAt < answer.took * SHARE;
    if (rests) return;
    // Until then the list is that of an earlier question.
    if (key !== asked) set(node, "aria-busy", "true");
    const found = await read("dead", question);
    // An answer to an earlier question is not shown.
    if (JSON.stringify([asking(), shared.changes]) !== key) return;
    [answer, asked, readAt] = [found, key, Date.now()];
    set(node, "aria-busy", null);
  }

  function draw({ info }) {
    if (!answer) return;
    const isFiltered = Object.keys(filter() ?? of).length > Object.keys(of).length;
    drawCauses();
    drawOrigins();
    const part = answer.messages.length < answer.selected ? `The ${isNewestFirst ? "newest" : "first"} ${count(answer.messages.length)} of ` : "";
    choice.draw(answer.messages, `${part}${many(answer.selected, "message")}${isFiltered ? " that these conditions select" : ""}${answer.partial ? ", and perhaps more: not all were read in time" : ""}`);
    for (const [name, button] of Object.entries(bulk)) text(button, `${verbOf(name, tab)} ${answer.partial ? "all" : answer.selected === 1 ? "it" : `all ${count(answer.selected)}`}…`);
    list(items, answer.messages, keyOf, (message) => makeItem(queue, message, choice.box(message)), (item, message) => {
      fillItem(item, message);
      choice.fill(item, message);
    });
    show(nothing, answer.messages.length === 0);
    text(nothing, isFiltered || !hasDied ? "No message is selected by these conditions." : tab === "letters" ? "No message is here that died in another queue." : info.deadforwarded > 0 && info.deadforward !== "NONE" ? `No dead message is here now: they go to ${info.deadforward}.` : info.died > 0 ? "No dead message is here now." : "No message of this queue has died.");
    show(tools, !hasDied || isFiltered || answer.selected > 0 || anyInput());
    show(more, answer.messages.length < answer.selected && wanted < MOST);
  }

  function anyInput() {
    return Object.values(fields).some(({ input }) => input.value !== "");
  }

  function drawCauses() {
    const kept = withChosen("cause", hasDied || conditions.cause ? answer.causes : []);
    show(causes, kept.length > 0);
    show(others, hasDied && answer["all-causes"] > answer.causes.length);
    text(others, `The ${count(answer.causes.length)} most frequent of ${count(answer["all-causes"])} causes.`);
    list(causes, kept, ({ cause }) => cause, ({ cause }) => el("li", {}, el("button", { type: "button", click: () => choose("cause", { cause }) }, el("b"), " ", el("span", { class: "cause" }, cause), el("span", { class: "dim" }))), (item, { cause, count: number, newest }) => {
      const [total, , last] = item.firstElementChild.children;
      text(total, count(number));
      text(last, Number.isFinite(newest) ? `last ${distance(newest)}` : "");
      set(last, "title", Number.isFinite(newest) ? instant(newest) : null);
      set(item.firstElementChild, "aria-pressed", String(isChosen("cause", { cause })));
    });
  }

  /** In which queues the letters died. The chosen one can be opened, or the only one. */
  function drawOrigins() {
    const kept = withChosen("from", answer.origins).map((one) => ({ ...one, from: param(one, "from") }));
    const [name, link, rest] = origins.children;
    show(origins, kept.length > 0);
    list(name, kept, ({ from }) => JSON.stringify(from),
      ({ from }) => el("button", { type: "button", class: "small", click: () => choose("from", from) }, shown(from, "from"), " ", el("b")),
      (button, { from, count: number }) => {
        text(button.lastElementChild, count(number));
        set(button, "aria-pressed", String(isChosen("from", from)));
      });
    const one = conditions.from ?? (kept.length === 1 ? kept[0].from : null);
    show(link, one !== null);
    text(link, one ? `Open ${shown(one, "from")}` : "");
    set(link, "href", one && address("queue", renamed(one)));
    text(rest, answer["all-origins"] > answer.origins.length ? ` and ${count(answer["all-origins"] - answer.origins.length)} other queues` : "");
  }

  function isChosen(name, one) {
    return JSON.stringify(conditions[name]) === JSON.stringify(one);
  }

  /** What was counted, and what is chosen although nothing of it is left. */
  function withChosen(name, counted) {
    const isMissing = conditions[name] && !counted.some((one) => isChosen(name, param(one, name)));
    return isMissing ? [{ ...conditions[name], count: 0, newest: NaN }, ...counted] : counted;
  }

  function choose(name, one) {
    conditions[name] = isChosen(name, one) ? null : one;
    wanted = STEP;
    remember();
    shared.refresh();
  }
  return { node, read: refresh, draw };
}
