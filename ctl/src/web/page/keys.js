// The keys of the page, besides those of a browser: through rows, up to the view above, to the search, and to a list of the keys.

import { el, pairs, refocus } from "./dom.js";

const KEYS = [
  ["j, k", "the next row, the row before; from a row on also ↓ and ↑"],
  ["Enter", "opens the row"],
  ["Space", "selects the message whose box has the focus: Tab goes there from the row"],
  ["Esc, Backspace", "from a chosen cause to all of them; else back to the list that led here, or up to the queue and to all queues"],
  ["/", "the search"],
  ["?", "these keys"],
];
const ROWS = ".queues tbody tr, .holders tbody tr, .messages > li, .causes > li";
/** What a letter or an arrow is typed into. */
const TYPED = "input:not([type=checkbox], [type=range]), textarea, select, dialog";

const main = document.getElementById("main");
const dialog = document.getElementById("dialog");
/** The addresses at which views were left, and of which list a row led to a view, by what they are about. */
const left = new Map();
const origins = new Map();
/** How deep views are that are no lists of queues. */
const DEPTHS = { queue: 1, message: 2 };

function view(hash) {
  return hash.split("?")[0].replace(/^#?\/?/, "");
}

/** What an address is about, whatever tab or filter it has. */
function subject(hash) {
  const named = [...new URLSearchParams(hash.split("?")[1])].filter(([name]) => /^(queue|id)(-base64)?$/.test(name));
  return JSON.stringify([view(hash), named.sort()]);
}

function depth(hash) {
  return DEPTHS[view(hash)] ?? 0;
}

/** Notes an address that is left for `next`, and returns a function that focuses the row that leads to it, once that view is drawn. */
export function leave(hash, next) {
  left.set(subject(hash), hash);
  if (depth(next) > depth(hash)) origins.set(subject(next), subject(hash));
  return () => {
    if (![main, document.body].includes(document.activeElement)) return;
    [...main.querySelectorAll(ROWS)].map((row) => row.querySelector("a")).find((link) => link && subject(link.hash) === subject(hash))?.focus();
  };
}

/** The address at which a view was left, with its tab and filter. */
export function asLeft(address) {
  return left.get(subject(address)) ?? address;
}

function move(by) {
  const rows = [...main.querySelectorAll(ROWS)].filter((row) => row.offsetParent !== null);
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + by))];
  next?.querySelector("a, button")?.focus();
}

/** Up, or from a chosen cause or former queue to all of them. */
function up() {
  const chosen = main.querySelector(".causes [aria-pressed=true], .origins [aria-pressed=true]");
  if (chosen) return chosen.click();
  const above = [...main.querySelectorAll(".crumbs a")].at(-1);
  if (above) location.hash = left.get(origins.get(subject(location.hash))) ?? above.hash;
  return undefined;
}

function showKeys() {
  const asker = document.activeElement;
  const names = el("dl", { class: "pairs" });
  pairs(names, KEYS);
  dialog.replaceChildren(el("h2", { id: "dialog-title" }, "Keys"), names, el("div", { class: "buttons" }, el("button", { type: "button", click: () => dialog.close() }, "Back")));
  dialog.addEventListener("close", () => refocus(asker), { once: true });
  dialog.showModal();
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(TYPED)) return;
  const isArrow = event.key.startsWith("Arrow");
  if (isArrow && !event.target.closest?.(ROWS)) return;
  const action = { j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), Escape: up, Backspace: up, "/": () => document.getElementById("search-id").focus(), "?": showKeys }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

document.addEventListener("keydown", onKey);
document.getElementById("keys").addEventListener("click", showKeys);
