// Advice with commands of a terminal: each can be copied.

import { el, text } from "./dom.js";

/** Words with which the sentence goes on after a command. */
const NEXT = "(?:and|or|with|whether|where|again|lists|shows?|adds|sends|changes)(?!\\S)";
/** A program and at least two words, of which a quoted one may have spaces. A command that lacks its words is not meant to be copied. */
const COMMAND = new RegExp(`(?:dqctl|redis-cli)(?: (?!${NEXT})(?:'[^']*'|[^\\s;,'])+?){2,}?(?=\\.?$|\\. |[;,] | ${NEXT})`, "g");

/** What a question about dead messages of a queue says besides: how they are kept with their errors, as `dqctl load` takes them. */
export function keepsDead(name) {
  const word = /^[\w:./@%+=-]+$/.test(name) ? name : name.includes("'") ? "QUEUE" : `'${name}'`;
  return ` To keep a copy with their errors, first: dqctl dump ${word} --state dead > dead.jsonl.`;
}

/** Fills a node with a text, in which each command has a button that copies it. */
export function advise(node, words) {
  if (node.words === words) return;
  node.words = words;
  const parts = [];
  let at = 0;
  for (const { 0: command, index } of words.matchAll(COMMAND)) {
    parts.push(words.slice(at, index), ...copied(command));
    at = index + command.length;
  }
  node.replaceChildren(...parts, words.slice(at));
}

function copied(command) {
  const code = el("code", {}, command);
  const button = el("button", { type: "button", class: "quiet copy", "aria-label": `Copy ${command}`, click: copy }, "Copy");
  // Without the right to it, as on a page that is not encrypted, the command is selected.
  async function copy() {
    try {
      await navigator.clipboard.writeText(command);
      text(button, "Copied");
    } catch {
      getSelection().selectAllChildren(code);
      text(button, "Selected");
    }
  }
  return [code, " ", button];
}
