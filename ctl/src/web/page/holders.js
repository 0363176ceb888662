// Who holds messages back: consumers with their deliveries, and groups with what waits in them.

import { read } from "./api.js";
import { actions } from "./actions.js";
import { follower } from "./batch.js";
import { el, list, nameOf, set, show, text } from "./dom.js";
import { address, count, distance, instant, many, now, param, shown, span } from "./format.js";

/** A table of names with numbers: `cells` are the texts, titles and addresses of a row, `make` adds a cell to it, `fill` changes that. */
export function table(kind, noun, headings, link, action = null) {
  const rows = el("tbody", { role: "rowgroup" });
  const head = [noun, ...headings].map((name, place) => el("th", { class: place === 0 ? "" : "num", role: "columnheader", scope: "col", "data-label": name }, name));
  if (action) head.push(el("th", { class: "write", role: "columnheader", scope: "col" }, el("span", { class: "unseen" }, action)));
  // On a phone its rows are shown as cards, which are still a table for those who cannot see them.
  const node = el("table", { class: kind, role: "table" }, el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)), rows);
  function draw(items, cells, make, fill) {
    const key = noun.toLowerCase();
    show(node, items.length > 0);
    list(rows, items, (item) => JSON.stringify([param(item, key), param(item, "queue"), item.host, item.library]),
      (item) => el("tr", { role: "row" }, el("th", { scope: "row", role: "rowheader", class: "name" }, el("a", { title: shown(item, key) }, nameOf(shown(item, key)))), headings.map((name) => el("td", { class: "num", role: "cell", "data-label": name })), make?.(item)),
      (row, item) => {
        set(row.firstElementChild.firstElementChild, "href", link(item));
        cells(item).forEach(([words, title, href], index) => {
          const cell = row.children[index + 1];
          if (href && !cell.firstElementChild) cell.append(el("a"));
          text(cell.firstElementChild ?? cell, words);
          if (href) set(cell.firstElementChild, "href", href);
          set(cell, "title", title);
        });
        fill?.(row, item);
      });
  }
  return { node, draw };
}

/** The connections that have the name of a consumer, in a column that is shown if they can be told of one. */
export function connections({ connections: number }) {
  if (number === null || number === undefined) return ["–", "It cannot be told: clients need not give their connections the names of consumers."];
  return number > 0 ? [count(number)] : ["none of this name", "Its messages come back when their leases expire, or when they are released."];
}

/** Shows the column of the connections if there is something to tell. */
export function showConnections(node, items) {
  node.classList.toggle("unnamed", !items.some((item) => Number.isFinite(item.connections)));
}

/** A cell with the button that releases what a consumer holds. */
export function releaseCell(shared, queue, item) {
  const button = el("button", { type: "button", class: "small", click: () => actions(shared, queue).release(param(item, "consumer"), shown(item, "consumer"), button.messages) }, "Release…", el("span", { class: "unseen" }, ` ${shown(item, "consumer")}`));
  return el("td", { class: "write", role: "cell" }, button);
}

/** The consumers that hold messages, the one that holds one for longest first. */
export function consumerList(queue, shared) {
  const names = table("holders", "Consumer", ["Messages", "Longest since", "Connections"], (item) => address("queue", { ...queue, tab: "inflight", ...param(item, "consumer") }), "Release");
  const nothing = el("p", { class: "empty", hidden: true });
  const more = el("p", { class: "dim" });
  const node = el("section", { "aria-label": "consumers" }, names.node, nothing, more);
  let answer = { consumers: [] };

  async function refresh() {
    answer = await read("consumers", queue);
  }

  function draw({ info }) {
    showConnections(names.node, answer.consumers);
    names.draw(answer.consumers, (item) => [[count(item.messages)], [distance(item.since), instant(item.since)], connections(item)], (item) => releaseCell(shared, queue, item),
      (row, item) => { row.lastElementChild.firstElementChild.messages = item.messages; });
    const held = answer.consumers.reduce((sum, item) => sum + item.messages, 0);
    const unnamed = Math.max(0, info.inflight - held);
    show(nothing, answer.consumers.length === 0);
    text(nothing, info.inflight > 0 ? `${many(info.inflight, "message")} in flight, but the consumers have not given their names: they pop without AS.` : "No consumer holds a message.");
    const parts = [];
    if (unnamed > 0 && answer.consumers.length > 0) parts.push(`${many(unnamed, "message")} in flight with consumers that have no name (they pop without AS).`);
    if (answer.limited || answer.consumers.length < answer.total) parts.push("There are more consumers: dqctl consumers lists all of them.");
    text(more, parts.join(" "));
  }
  return { node, read: refresh, draw };
}

/** Whether somebody has paused a group. The time is null if it is paused without an end, and 0 if it is not paused. */
function isPaused(item) {
  return item["paused-until"] === null || item["paused-until"] > 0;
}

/** Why no message of a group is delivered, and until when. `limit` is GROUPINFLIGHT of the queue. */
function heldBack(item, limit) {
  if (item["paused-until"] === null) return ["paused until it is resumed"];
  if (item["paused-until"] > 0) return [`paused, resumes ${distance(item["paused-until"])}`, instant(item["paused-until"])];
  const at = item["next-delivery"];
  if (at > now()) return [`at its rate for ${span(at - now())}`, `The next delivery is at ${instant(at)}`];
  return [limit > 0 && item.waiting > 0 && item.occupied >= limit ? "at its limit" : ""];
}

/** The batches of the messages that the queue holds, and how far they are. */
export function batchList(queue) {
  const names = table("holders", "Batch", ["Ended", "Left", "Acked", "Dead", "Cancelled", "Then"], (item) => address("queue", { ...queue, tab: "batches", ...param(item, "batch") }));
  names.node.querySelector("tr").append(el("th", { role: "columnheader", scope: "col" }, el("span", { class: "unseen" }, "Progress")));
  const nothing = el("p", { class: "empty", hidden: true });
  const more = el("p", { class: "dim" });
  const node = el("section", { "aria-label": "batches" }, names.node, nothing, more);
  let answer = { batches: [] };

  async function refresh() {
    answer = await read("batches", queue);
  }

  /** Batches of which the queue holds no message any more. No command lists their names. */
  function without({ batches: number }) {
    const left = answer.limited ? 0 : number - answer.batches.length;
    if (!(left > 0)) return "";
    return `${answer.batches.length > 0 ? `${count(left)} more` : many(left, "open batch", "open batches")} whose messages have all ended, but nobody has said what follows. No command lists the names; to close one: dqctl batch QUEUE NAME --then PAYLOAD.`;
  }

  function draw({ info }) {
    names.draw(answer.batches, (item) => [[`${count(item.total - item.left)} of ${count(item.total)}`], [count(item.left)], [count(item.acked)], [count(item.dead)], [count(item.cancelled)], [follower(item) ?? "open", item.closed ? "Follows when no message is left" : "Nobody has said which message follows"]],
      () => el("td", { class: "progress", role: "cell" }, el("progress", { max: "1" })),
      (row, item) => {
        const bar = row.lastElementChild.firstElementChild;
        set(bar, "value", item.total > 0 ? (item.total - item.left) / item.total : 0);
        set(bar, "aria-label", `Progress of ${shown(item, "batch")}`);
      });
    show(nothing, answer.batches.length === 0);
    text(nothing, without(info) || "No message of the queue belongs to a batch.");
    text(more, answer.batches.length > 0 && without(info) ? without(info) : answer.limited ? "There may be more batches: the first 5,000 messages were looked at. dqctl batch lists all of them." : "");
  }
  return { node, read: refresh, draw };
}

/** A group is found by its name among all groups, so it is looked for at most this share of the time. */
const SHARE = 20;

/** The groups, first those that are held back, so that they can be resumed however many others there are. */
export function groupList(queue, shared, { contains: wanted = "" }) {
  // To where its first messages are.
  const tabOf = (item) => (item["oldest-due"] > now() ? "delayed" : item.waiting > 0 ? "ready" : "inflight");
  const names = table("holders groups", "Group", ["Waiting", "Occupied by", "Oldest due", "Held back"], (item) => address("queue", { ...queue, tab: tabOf(item), ...param(item, "group") }), "Pause or resume");
  const nothing = el("p", { class: "empty", hidden: true });
  const range = el("p", { class: "range", role: "status" });
  const filter = el("input", { type: "search", id: "group-filter", value: wanted, placeholder: "Part of a name", autocomplete: "off", autocapitalize: "none", spellcheck: "false", input: change });
  const pause = el("button", { type: "button", class: "write", click: () => actions(shared, queue).pauseNamedGroup() }, "Pause a group by name…");
  const tools = el("div", { class: "tools" }, el("div", { class: "field" }, el("label", { for: "group-filter" }, "Filter"), filter), pause, range);
  const node = el("section", { "aria-label": "groups" }, tools, names.node, nothing);
  let answer = { groups: [] };
  let asked = "";
  let rests = 0;

  /** The address follows, so that it can be shared. */
  function change() {
    history.replaceState(null, "", address("queue", { ...queue, tab: "groups", ...part() }));
    shared.refresh();
  }

  function part() {
    return filter.value ? { contains: filter.value } : {};
  }

  async function refresh() {
    const key = JSON.stringify([part(), shared.changes]);
    if (key === asked && Date.now() < rests) return;
    const began = Date.now();
    const found = await read("groups", { ...queue, ...part() });
    // An answer to an earlier question is not shown.
    if (JSON.stringify([part(), shared.changes]) !== key) return;
    [answer, asked, rests] = [found, key, Date.now() + (Date.now() - began) * SHARE];
  }

  function hold(item) {
    const button = el("button", { type: "button", class: "small", click: () => actions(shared, queue)[button.isPaused ? "resumeGroup" : "pauseGroup"](param(item, "group"), shown(item, "group")) }, el("span"), el("span", { class: "unseen" }, ` ${shown(item, "group")}`));
    return el("td", { class: "write", role: "cell" }, button);
  }

  function draw({ info }) {
    names.draw(answer.groups, (item) => [[count(item.waiting)], [count(item.occupied)], [distance(item["oldest-due"] ?? NaN), item["oldest-due"] ? instant(item["oldest-due"]) : null], heldBack(item, info.groupinflight)], hold,
      (row, item) => {
        const button = row.lastElementChild.firstElementChild;
        button.isPaused = isPaused(item);
        text(button.firstElementChild, button.isPaused ? "Resume…" : "Pause…");
      });
    const isEmpty = answer.groups.length === 0;
    show(nothing, isEmpty);
    text(nothing, filter.value ? `No group ${answer.limited ? "that was looked at " : ""}has “${filter.value}” in its name.` : "No group has a message that is not dead, and none is paused.");
    show(filter.parentNode, !isEmpty || filter.value !== "");
    text(range, isEmpty ? "" : sentence());
  }

  /** What is listed, and what is not. */
  function sentence() {
    const first = answer.groups.length < answer.total ? `The first ${count(answer.groups.length)} of ` : "";
    const paused = answer.paused > 0 ? `, ${count(answer.paused)} paused` : "";
    return `${first}${answer.limited ? "more than " : ""}${many(answer.total, "group")}${paused}${first || answer.limited ? ": the filter finds the others" : ""}.`;
  }
  return { node, read: refresh, draw };
}
