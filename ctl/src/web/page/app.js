// Shows the views that the server renders, keeps them up to date, and asks about acts.
//
// The address of a view is behind the #. What the server has rendered is put in place without what stays, so that the
// focus, what is typed and what is open stay too. Text only ever becomes a text node.

const TOKEN = "dq-token";
/** How soon a view is asked for again after a failure, and after something was typed, in ms. */
const EVERY = 2500;
const PAUSE = 250;
/** A request for a view that takes longer has failed, in ms. */
const PATIENCE = 15000;

const main = document.getElementById("main");
const problem = document.getElementById("problem");
const done = document.getElementById("done");
const dialog = document.getElementById("dialog");
const server = document.getElementById("server");
let timer = 0;
let typing = 0;
let shown = null;

/** An element with attributes and children. A function listens to the event of its name. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      node.addEventListener(name, value);
    } else if (value !== false && value !== null && value !== undefined) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat().filter((child) => child !== null));
  return node;
}

// The server.

function authorization() {
  const token = sessionStorage.getItem(TOKEN);
  // Headers have bytes: a token of other characters is sent as its UTF-8.
  // A proxy may have the header Authorization for itself.
  return token ? { "X-DQ-Token": String.fromCharCode(...new TextEncoder().encode(token)) } : {};
}

/** A rendered view as a document, and its status, which is 0 if nothing answered. */
function rendered(address) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("GET", `api/view/${address}`);
    request.responseType = "document";
    request.timeout = PATIENCE;
    for (const [name, value] of Object.entries(authorization())) request.setRequestHeader(name, value);
    request.onloadend = () => resolve([request.status, request.response]);
    request.send();
  });
}

async function post(path, body) {
  const headers = { ...authorization(), "X-DQ": "1", "Content-Type": "application/json" };
  const response = await fetch(`api/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

// Views.

function address() {
  return location.hash.replace(/^#\/?/, "");
}

/** Shows the view of the address, and again after a while. */
async function load() {
  clearTimeout(timer);
  const wanted = address();
  const [status, view] = await rendered(wanted);
  if (wanted !== address()) return;
  let every = EVERY;
  if (status === 200 && view) {
    every = Number(view.body.dataset.every);
    show(view, wanted);
  } else if (status === 401) {
    askToken();
    return;
  } else {
    if (status === 404) showMissing(wanted);
    warn(status, view?.body?.textContent ?? "");
  }
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(load, every);
}

/** What a view is about, whatever its tab and its filter. */
function about(wanted) {
  const [view, query = ""] = wanted.split("?");
  return [view, ...query.split("&").filter((pair) => /^(queue|id)=/.test(pair))].join(" ");
}

function show(view, wanted) {
  const { servers, mode } = view.body.dataset;
  document.title = view.title === "dq" ? "dq" : `${view.title} – dq`;
  server.textContent = [servers, mode].filter(Boolean).join(" · ");
  problem.replaceChildren();
  main.classList.remove("stale");
  const active = document.activeElement;
  const isSame = shown !== null && about(wanted) === about(shown);
  children(main, view.body);
  for (const link of document.querySelectorAll(".top nav a")) {
    link.toggleAttribute("aria-current", link.hash === `#/${wanted.split("?")[0]}`);
  }
  if (!isSame) {
    window.scrollTo(0, 0);
    if (shown !== null) main.focus({ preventScroll: true });
  } else if (active?.isConnected && active !== document.activeElement) active.focus({ preventScroll: true });
  shown = wanted;
  drawSelection();
}

/** Shows nothing of the view before, since this one is not there. */
function showMissing(wanted) {
  shown = wanted;
  document.title = "dq";
  main.replaceChildren(el("p", { class: "empty" }, el("a", { href: "#/" }, "All queues")));
}

function warn(status, words) {
  const titles = {
    0: "dqctl web does not answer",
    404: "Not there:",
    501: "The module dq is not loaded",
    503: "The server of the queues cannot be reached",
  };
  const text = words || "This page tries again by itself.";
  problem.replaceChildren(el("p", {}, el("strong", {}, titles[status] ?? "Not possible"), ` ${text}`));
  main.classList.add("stale");
}

function askToken() {
  if (main.querySelector("#token")) return;
  const input = el("input", { id: "token", type: "password", autocomplete: "current-password", required: true });
  const submit = (event) => {
    event.preventDefault();
    sessionStorage.setItem(TOKEN, input.value);
    main.replaceChildren();
    load();
  };
  const isFirst = sessionStorage.getItem(TOKEN) === null;
  const words = isFirst
    ? "This server wants the token that dqctl web was started with. It is kept for this tab only."
    : "The token was not accepted.";
  main.replaceChildren(
    el(
      "form",
      { class: "token", submit },
      el("h1", {}, "Token"),
      el("p", {}, words),
      el("label", {}, "Token", input),
      el("button", { type: "submit", class: "primary" }, "Open"),
    ),
  );
  input.focus();
}

/** Makes the children of a node those of another one, and keeps those that are there already. */
function children(node, next) {
  const id = (child) => child.getAttribute?.("id");
  const keyed = new Map([...node.children].filter(id).map((child) => [id(child), child]));
  let place = node.firstChild;
  for (const child of [...next.childNodes]) {
    const same = id(child) ? keyed.get(id(child)) : place && !id(place) ? place : null;
    if (same?.nodeName !== child.nodeName) {
      node.insertBefore(document.importNode(child, true), place);
      continue;
    }
    // What has the focus loses it if it is moved: rather what stands before it goes.
    while (place && place !== same && !id(place)) place = remove(place);
    if (same === place) place = place.nextSibling;
    else node.insertBefore(same, place);
    if (same.nodeType === Node.ELEMENT_NODE) update(same, child);
    else if (same.data !== child.data) same.data = child.data;
  }
  while (place) place = remove(place);
}

/** Removes a node, and returns the one after it. */
function remove(node) {
  const after = node.nextSibling;
  node.remove();
  return after;
}

function update(node, next) {
  const isOpen = (name) => name === "open" && node.tagName === "DETAILS";
  const isOfSelection = (name) => name === "disabled" && "selected" in node.dataset;
  const keeps = (name) => isOpen(name) || isOfSelection(name);
  for (const { name } of [...node.attributes]) {
    if (!next.hasAttribute(name) && !keeps(name)) node.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (node.getAttribute(name) !== value && !keeps(name)) node.setAttribute(name, value);
  }
  children(node, next);
}

/** The address follows what is typed into a filter, so that it can be shared. */
function filter(form) {
  const names = new Set([...new FormData(form).keys(), "count", "offset"]);
  const kept = (address().split("?")[1] ?? "").split("&").filter((pair) => pair && !names.has(pair.split("=")[0]));
  const given = [...new FormData(form)].filter(([, value]) => value !== "");
  const typed = given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  history.replaceState(null, "", `#/${form.dataset.view}?${[...kept, ...typed].join("&")}`);
  load();
}

/** Which of the messages are selected, and what can be done with them. */
function drawSelection() {
  const boxes = [...main.querySelectorAll("[name=ids]")];
  const number = boxes.filter((box) => box.checked).length;
  for (const button of main.querySelectorAll("[data-selected]")) button.disabled = number === 0;
  for (const all of main.querySelectorAll("[data-all]")) {
    all.checked = number > 0 && number === boxes.length;
    all.indeterminate = number > 0 && number < boxes.length;
  }
}

// Acts.

/** Asks about the act of a button, with the options that it can have. */
async function ask(button) {
  const given = JSON.parse(button.dataset.act);
  const edit = JSON.parse(button.dataset.edit);
  const { selected } = button.dataset;
  if (selected) {
    given[selected] = [...main.querySelectorAll(`[name=${selected}]:checked`)].map((box) => box.value);
  }
  const question = el("p", { class: "question" });
  const command = el("code");
  const error = el("p", { class: "error", role: "alert" });
  const title = button.textContent.replace("…", "");
  const yes = el("button", { type: "submit", class: `primary ${button.className}` }, title);
  const no = el("button", { type: "button", click: () => dialog.close() }, "Back");
  const fields = el("div");
  const more = el("details", { hidden: true }, el("summary", {}, "More options"));
  let asked = null;
  let answer = {};

  function body() {
    const inputs = [...dialog.querySelectorAll("[data-option]")].filter(({ value }) => value !== "");
    const lines = (text) => text.split("\n").filter(Boolean);
    const value = (input) => ("lines" in input.dataset ? lines(input.value) : input.value);
    return { ...given, ...Object.fromEntries(inputs.map((input) => [input.name, value(input)])) };
  }

  async function look(wanted) {
    answer = await post("ask", wanted);
    asked = JSON.stringify(wanted);
    question.textContent = answer.question ?? "";
    command.textContent = answer.command;
  }

  async function carryOut(wanted) {
    const { number, done: verb, lines, notes } = await post("do", { ...wanted, most: answer.most });
    report([number === null ? lines.join(", ") : `${number} ${verb}`, ...notes].filter(Boolean).join(". "));
  }

  async function submit(event) {
    event.preventDefault();
    if (yes.ariaDisabled) return;
    const label = yes.textContent;
    yes.ariaDisabled = "true";
    error.textContent = "";
    try {
      const wanted = body();
      const isNew = asked !== JSON.stringify(wanted);
      if (isNew) await look(wanted);
      if (answer.missing) throw new Error(answer.missing);
      // Other options may select other messages: their number is to be seen first.
      if (!isNew || typeof answer.number !== "number") {
        await carryOut(wanted);
        dialog.close();
        load();
      }
    } catch (failure) {
      error.textContent = failure.message;
    }
    yes.textContent = label;
    yes.ariaDisabled = null;
  }

  dialog.replaceChildren(
    el(
      "form",
      { submit },
      el("h2", { id: "dialog-title" }, title),
      question,
      fields,
      more,
      el("p", { class: "dim" }, command),
      error,
      el("div", { class: "buttons" }, no, yes),
    ),
  );
  dialog.showModal();
  try {
    const filled = Object.entries(edit).filter(([, value]) => value !== "" && value !== false);
    await look({ ...given, ...Object.fromEntries(filled) });
    // What is offered are the options without those that have a value, which are fields all the same.
    const { options } = await post("ask", given);
    fields.append(...options.filter(({ name }) => name in edit).map((option) => field(option, edit[option.name])));
    const others = options.filter(({ name }) => !(name in edit));
    more.append(...others.map((option) => field(option, "")));
    more.hidden = others.length === 0;
    (fields.querySelector("input, select, textarea") ?? (yes.classList.contains("danger") ? no : yes)).focus();
  } catch (failure) {
    error.textContent = failure.message;
  }
}

/** An option of an act, as the command line describes it. */
function field(option, value) {
  const { name, help } = option;
  const words = Array.isArray(value) ? value.join("\n") : String(value);
  const hint = el("span", { class: "dim", id: `help-${name}` }, help ?? "");
  return el("label", { class: "field" }, name, control(option, words), hint);
}

/** What an option is chosen or typed in. */
function control({ name, placeholder, choices, lines }, words) {
  const common = { name, "data-option": "", "aria-describedby": `help-${name}` };
  if (lines) common["data-lines"] = "";
  if (choices.length > 0) {
    const shownAs = (choice) => (choice === "true" ? "yes" : choice);
    const option = (choice) => el("option", { value: choice, selected: choice === words }, shownAs(choice));
    return el("select", common, ["", ...choices].map(option));
  }
  if (lines || ["payload", "then", "result"].includes(name)) {
    const rows = Math.min(16, Math.max(2, words.split("\n").length));
    return el("textarea", { ...common, rows, spellcheck: "false" }, words);
  }
  const asTyped = { autocomplete: "off", autocapitalize: "none", spellcheck: "false" };
  return el("input", { ...common, ...asTyped, value: words, placeholder });
}

/** Reports the outcome of an act. */
function report(words) {
  const dismiss = () => el("button", { type: "button", class: "quiet", click: () => report("") }, "Dismiss");
  done.replaceChildren(...(words ? [el("p", {}, words, " ", dismiss())] : []));
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    // Without the right to it, as on a page that is not encrypted, the command is selected.
    getSelection().selectAllChildren(button.previousElementSibling);
  }
}

async function save(button) {
  const response = await fetch(`api/${button.dataset.save.replace("#/", "")}`, { headers: authorization() });
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({ error: `the answer has the status ${response.status}` }));
    report(`Nothing was saved: ${error}`);
    return;
  }
  const href = URL.createObjectURL(await response.blob());
  el("a", { href, download: document.title.replace(/[^\w.-]+/g, "_") }).click();
  URL.revokeObjectURL(href);
}

// Keys, besides those of a browser.

function move(by) {
  const all = [...main.querySelectorAll("tbody tr, .messages > li, .causes > li")];
  const rows = all.filter((row) => row.offsetParent !== null && row.querySelector("a, button"));
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + by))]?.querySelector("a, button")?.focus();
}

function onKey(event) {
  const isTyped = event.target.closest?.("input:not([type=checkbox]), textarea, select, dialog");
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyped) return;
  const up = () => {
    location.hash = [...main.querySelectorAll(".crumbs a")].at(-1)?.hash ?? "#/";
  };
  const search = () => document.getElementById("search-id").focus();
  const act = { j: () => move(1), k: () => move(-1), Escape: up, Backspace: up, "/": search }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

document.addEventListener("keydown", onKey);
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.act) ask(button);
  else if (button?.dataset.copy) copy(button);
  else if (button?.dataset.save) save(button);
});
document.addEventListener("change", ({ target }) => {
  const boxes = target.dataset.all ? main.querySelectorAll(`[name=${target.dataset.all}]`) : [];
  for (const box of boxes) box.checked = target.checked;
  drawSelection();
});
main.addEventListener("input", ({ target }) => {
  const form = target.closest(".filters");
  clearTimeout(typing);
  if (form) typing = setTimeout(() => filter(form), PAUSE);
});
main.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const id = document.getElementById("search-id").value.trim();
  if (id) location.hash = `#/find?id=${encodeURIComponent(id)}`;
});
document.addEventListener("visibilitychange", () => document.hidden || load());
window.addEventListener("hashchange", () => {
  dialog.close();
  report("");
  load();
});
load();
