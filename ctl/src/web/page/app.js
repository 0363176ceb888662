// The frame of the page: which view is shown, how it is kept up to date, and how failures are reported.
//
// A view is an element and a function that reads what it shows. The address has the view and its parameters after the #,
// with the names that the API has.

import { read, setToken, Problem } from "./api.js";
import { serverIsBack } from "./ask.js";
import { canFocus, el, refocus, set, text } from "./dom.js";
import { address, clock, learnClock, many, now, shown } from "./format.js";
import { overview } from "./overview.js";
import { queue } from "./queue.js";
import { leave } from "./keys.js";
import { consumers } from "./consumers.js";
import { message } from "./message.js";
import { search } from "./search.js";

const VIEWS = { "": overview, consumers, queue, message, search };
/** How often a view is read again, and how soon after a failure, in ms. */
const EVERY = 2500;
/** After this time without the first answer, the page says so, in ms. */
const SLOW = 1000;
/** What is wrong with the server of the queues, by what is said about it. */
const CAUSES = [[/ does not answer/, "does not answer"], [/^(WRONGPASS|NOAUTH)/, "wants another user or password"]];

const main = document.getElementById("main");
const server = document.getElementById("server");
const problem = document.getElementById("problem");
const done = document.getElementById("done");
const searchField = document.getElementById("search-id");

/** State shared by all views: whether changes are allowed, and how many were made. */
const shared = { writes: false, known: false, changes: 0, refresh, say, learn };
let current = null;
let timer = 0;
let lastGood = 0;
/** What had the focus last. */
let focused = null;
/** Focuses the row that leads to the view that was left last. */
let focusOrigin = null;

/** Reports the outcome of an action. */
function say(words) {
  text(done, "");
  if (words) done.replaceChildren(el("p", {}, words, " ", el("button", { type: "button", class: "quiet", click: () => { say(""); refocus(focused); } }, "Dismiss")));
}

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const params = Object.fromEntries(new URLSearchParams(query ?? ""));
  if (main.contains(current?.node) && current.accept?.(path, params)) return void refresh();
  const view = (VIEWS[path] ?? overview)(params, shared);
  searchField.value = path === "search" ? shown(params, "id") : "";
  const isSame = current?.kind === view.kind;
  current = view;
  for (const link of document.querySelectorAll(".views a")) set(link, "aria-current", link.hash === `#/${path}` ? "page" : null);
  document.title = view.title === "dq" ? "dq" : `${view.title} – dq`;
  view.node.classList.add("unread");
  main.replaceChildren(view.node);
  if (!isSame) {
    window.scrollTo(0, 0);
    if (shared.known) main.focus({ preventScroll: true });
    say("");
  }
  refresh();
}

/** Reads the view now, and then again and again. */
async function refresh() {
  clearTimeout(timer);
  const view = current;
  try {
    if (!shared.known) learn(await firstAnswer(view));
    await view.read();
    if (view !== current) return;
    good();
    focusOrigin?.();
    focusOrigin = null;
  } catch (error) {
    await showLast(view);
    if (view !== current) return;
    bad(error);
  }
  keepFocus();
  clearTimeout(timer);
  if (!document.hidden && !view.once && !main.querySelector("#token")) timer = setTimeout(refresh, EVERY);
}

/** Reads the server for the first time. One that is stopped or busy is not waited for in silence. */
async function firstAnswer(view) {
  const isWaiting = setTimeout(async () => {
    await showLast(view);
    if (!shared.known) warn("No answer yet", "The server of the queues is stopped or busy, or the network is slow. This page waits for it");
  }, SLOW);
  try {
    return await read("server");
  } finally {
    clearTimeout(isWaiting);
  }
}

/** Shows what a view knows of the time when the server answered last, if it shows nothing else. */
async function showLast(view) {
  if (!view.last || !view.node.classList.contains("unread")) return;
  const at = await view.last().catch(() => null);
  if (!at) return;
  view.node.classList.remove("unread");
  lastGood = at;
}

/** Passes the focus on if what has it cannot have it any more, such as the button of an action that has nothing left to do. */
function keepFocus() {
  const active = document.activeElement;
  if (focused && !canFocus(focused) && (active === focused || active === document.body)) refocus(focused);
}

/** Notes what the server allows. */
function learn(answer) {
  shared.writes = answer.writes;
  shared.known = true;
  learnClock(answer.now);
  const names = answer.servers.map((one) => one.server).join(", ");
  text(server, `${answer.cluster ? `Cluster of ${answer.servers.length} masters` : names}${answer.writes ? "" : " · read-only"}`);
  set(server, "title", answer.servers.map((one) => `${one.server}: ${one.error ?? one.version}`).join("\n"));
  document.body.classList.toggle("read-only", !answer.writes);
}

function good() {
  current.node.classList.remove("unread");
  lastGood = now();
  if (problem.hasChildNodes()) serverIsBack();
  problem.replaceChildren();
  main.classList.remove("stale");
}

function bad(error) {
  if (!(error instanceof Problem)) {
    console.error(error);
    warn("This page has a defect", String(error));
  } else if (error.status === 401) {
    askToken();
  } else if (error.status === 0) {
    warn("dqctl web does not answer", "Is it still running? This page tries again by itself.");
  } else if (error.status === 501) {
    warn("The module dq is not loaded", `${error.message}. Until then there are no queues to show. This page tries again by itself.`);
  } else if (error.status === 503) {
    const [, what] = CAUSES.find(([said]) => said.test(error.message)) ?? [null, "cannot be reached"];
    warn(`The server of the queues ${what}`, `${error.message}. This page tries again by itself.`);
  } else {
    warn(error.status === 404 ? "Not there" : "Not possible", error.message);
  }
}

/** In whole minutes, so that it is not read out again and again. */
function age() {
  const minutes = Math.floor((now() - lastGood) / 60000);
  return minutes > 0 ? `, ${many(minutes, "minute")} ago` : "";
}

function warn(title, words) {
  const since = lastGood && !main.querySelector(".unread") ? ` What is shown is of ${clock(lastGood)}${age()}.` : "";
  const line = `${words.replace(/^./, (letter) => letter.toUpperCase()).replace(/\.?$/, ".")}${since}`;
  if (problem.textContent !== title + line) problem.replaceChildren(el("p", {}, el("strong", {}, title), el("span", {}, line)));
  main.classList.add("stale");
}

function askToken() {
  problem.replaceChildren();
  if (main.querySelector("#token")) return;
  const wrong = sessionStorage.getItem("dq-token") !== null;
  const input = el("input", { id: "token", type: "password", autocomplete: "current-password", required: true });
  const submit = (event) => {
    event.preventDefault();
    setToken(input.value);
    shared.known = false;
    route();
  };
  main.replaceChildren(el("form", { class: "card token", submit },
    el("h1", {}, "Token"),
    el("p", {}, wrong ? "The token was not accepted." : "This server wants the token that dqctl web was started with. It is kept for this tab only."),
    el("label", { for: "token" }, "Token"), input,
    el("div", { class: "buttons" }, el("button", { type: "submit", class: "primary" }, "Open"))));
  input.focus();
}

main.addEventListener("focusin", (event) => (focused = event.target));
document.getElementById("skip").addEventListener("click", () => main.focus());
document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const id = searchField.value.trim();
  if (id) location.hash = address("search", { id });
});
document.addEventListener("visibilitychange", () => document.hidden || (current.once && main.contains(current.node) && !current.node.classList.contains("unread")) || refresh());
window.addEventListener("hashchange", ({ oldURL, newURL }) => {
  focusOrigin = leave(new URL(oldURL).hash, new URL(newURL).hash);
  document.getElementById("dialog").close(); // Its question is about the view that is left.
  route();
});
route();
