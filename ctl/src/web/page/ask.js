// The questions of the page: a dialog with fields, and the readers of what is typed into them.

import { advise } from "./command.js";
import { el, refocus, set, text } from "./dom.js";
import { count, parseSpan } from "./format.js";

export const SPAN_HINT = "A time with a unit: 30s, 15m, 1h30m, 2d.";
const dialog = document.getElementById("dialog");
/** The error of the question that is open, and the status of the API that it comes from, if it comes from there. */
let failure = { node: null };

// Readers of fields: the value, or null if it is empty. An error says what would be right.

export function time(words) {
  if (words.trim() === "") return null;
  const ms = parseSpan(words);
  if (ms === null) throw new Error(SPAN_HINT);
  return ms;
}

export function moment(words) {
  if (words === "") return null;
  const at = new Date(words).getTime();
  if (!Number.isFinite(at)) throw new Error("A date and a time.");
  return at;
}

export function headers(words) {
  if (words.trim() === "") return null;
  let value = null;
  try {
    value = JSON.parse(words);
  } catch {
    // Reported below.
  }
  if (value === null || Array.isArray(value) || typeof value !== "object" || Object.values(value).some((text) => typeof text !== "string")) throw new Error('A JSON object of texts, such as {"trace": "1f"}.');
  return value;
}

export function number(least, most) {
  return (words) => {
    if (words.trim() === "") return null;
    const value = Number(words.replace("−", "-"));
    if (!Number.isInteger(value) || value < least || value > most) throw new Error(`A whole number from ${count(least)} to ${count(most)}.`);
    return value;
  };
}

/** Takes back that the server could not be reached, since it answers again. Whether the change was made is not known. */
export function serverIsBack() {
  if (![0, 501, 503].includes(failure.status)) return;
  set(failure.node, "class", "dim");
  text(failure.node, "The server answers again. Look whether the change was made before you repeat it.");
}

/**
 * Asks a question, and then runs the action. Errors are shown in the question, so that it can be answered again; `left` is told
 * those that come after it was left.
 */
export function ask({ title, words, fields = [], confirm, danger = false, run, left }) {
  const error = el("p", { class: "dialog-error", role: "alert" });
  const inputs = fields.map(input);
  const more = inputs.filter(({ field }) => field.more);
  const yes = el("button", { type: "submit", class: danger ? "danger primary" : "primary" }, confirm);
  const no = el("button", { type: "button", click: () => dialog.close() }, "Back");
  const isShown = () => dialog.open && yes.isConnected;
  const fail = (words, status) => {
    failure = { node: error, status };
    set(error, "class", "dialog-error");
    text(error, words);
  };
  const submit = async (event) => {
    event.preventDefault();
    // The button is not disabled, so that it keeps the focus.
    if (yes.ariaDisabled) return;
    const values = {};
    for (const { field, control } of inputs) {
      try {
        if (field.required && control.value.trim() === "") throw new Error("This is needed.");
        values[field.name] = field.parse ? field.parse(control.value) : control.value;
        set(control, "aria-invalid", null);
      } catch (problem) {
        set(control, "aria-invalid", "true");
        fail(`${field.label}: ${problem.message}`);
        set(control.closest("details") ?? control, "open", field.more);
        control.focus();
        return;
      }
    }
    set(yes, "aria-disabled", "true");
    fail("");
    try {
      await run(values, (progress) => text(yes, progress));
      if (isShown()) dialog.close();
    } catch (problem) {
      if (!isShown()) return void left(problem);
      fail(problem.message, problem.status);
      text(yes, confirm);
      set(yes, "aria-disabled", null);
    }
  };
  const asker = document.activeElement;
  dialog.replaceChildren(el("form", { submit, novalidate: true },
    el("h2", { id: "dialog-title" }, title), words ? advised(words) : null,
    inputs.filter(({ field }) => !field.more).map(({ node }) => node), more.length > 0 ? el("details", {}, el("summary", {}, "More options"), more.map(({ node }) => node)) : null, error, el("div", { class: "buttons" }, no, yes)));
  dialog.showModal();
  const first = inputs[0]?.control ?? (danger ? no : yes);
  first.focus();
  // The browser gives the focus back, if the button can still have it. Whoever has moved it since keeps it.
  dialog.addEventListener("close", () => { if (document.activeElement === document.body) refocus(asker); }, { once: true });
}

/** Words in which commands can be copied. */
function advised(words) {
  const node = el("p");
  advise(node, words);
  return node;
}

/** About how many lines a text takes in a field. */
function linesOf(words) {
  return words.split("\n").reduce((lines, line) => lines + Math.max(1, Math.ceil(line.length / 80)), 0);
}

function input(field) {
  const id = `field-${field.name}`;
  const hint = field.hint ? el("p", { class: "hint", id: `${id}-hint` }, field.hint) : null;
  const common = { id, name: field.name, "aria-describedby": hint ? `${id}-hint` : null, required: Boolean(field.required) };
  const plain = { autocomplete: "off", autocapitalize: "none", spellcheck: "false" };
  let control;
  if (field.options) {
    control = el("select", common, field.options.map(([value, words]) => el("option", { value, selected: value === field.value }, words)));
  } else if (field.type === "textarea") {
    control = el("textarea", { ...common, ...plain, rows: Math.min(24, Math.max(field.name === "payload" ? 5 : 2, linesOf(String(field.value ?? "")))) }, field.value ?? "");
  } else {
    control = el("input", { ...common, ...plain, type: field.type === "number" ? "text" : field.type ?? "text", inputmode: field.type === "number" ? "numeric" : null, value: field.value ?? "" });
  }
  return { field, control, node: el("div", { class: "field" }, el("label", { for: id }, field.label), control, hint) };
}
