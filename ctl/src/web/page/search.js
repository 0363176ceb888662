// The search: queues by a part of their name, messages by their id or its beginning. It is done once, since it looks at much.

import { read } from "./api.js";
import { el, list, nameOf, set, show, text } from "./dom.js";
import { address, count, learnClock, many, param, shown } from "./format.js";
import { asLeft } from "./keys.js";
import { WORDS } from "./message.js";
import { snippet } from "./payload.js";

/** The most queues that are listed. */
const QUEUES = 20;
/** Messages at first, how many more at a time, and at most. */
const STEP = 50;
const MOST = 500;

export function search(params, shared) {
  let wanted = STEP;
  const queues = el("ol", { class: "messages" });
  const items = el("ol", { class: "messages" });
  const status = el("p", { class: "searching", role: "status" }, "Searching…");
  const named = el("section", { hidden: true }, el("h2", {}, "Queues"), queues);
  const more = el("button", { type: "button", hidden: true, click: () => { wanted = Math.min(MOST, wanted + STEP); shared.refresh(); } }, "Show more");
  const found = el("section", { hidden: true }, el("h2", {}, "Messages"), items, el("div", { class: "more" }, more));
  const node = el("div", { class: "search-view" }, el("nav", { class: "crumbs", "aria-label": "Path" }, el("a", { href: asLeft("#/") }, "Queues")),
    el("div", { class: "head" }, el("h1", { class: "name" }, `Search: ${shown(params, "id")}`)), status, named, found);

  async function refresh() {
    const id = param(params, "id");
    const contains = id.id === undefined ? { "contains-base64": id["id-base64"] } : { contains: id.id };
    const [answer, names] = await Promise.all([read("search", { ...id, count: wanted }), read("queues", { ...contains, sort: "name", limit: QUEUES })]);
    learnClock(answer.now);
    text(status, sentence(answer, names));
    show(named, names.queues.length > 0);
    show(found, answer.found.length > 0);
    show(more, answer.more && wanted < MOST);
    list(queues, names.queues, (row) => JSON.stringify(param(row, "queue")),
      (row) => el("li", {}, el("div", { class: "line-one" }, el("a", { href: address("queue", param(row, "queue")) }, nameOf(shown(row, "queue"))))), () => undefined);
    list(items, answer.found, (one) => JSON.stringify([param(one, "queue"), param(one, "id")]),
      (one) => el("li", {}, el("div", { class: "line-one" }, el("a", { href: address("message", { ...param(one, "queue"), ...param(one, "id") }) }, nameOf(`${shown(one, "queue")} / ${shown(one, "id")}`)), el("span", { class: "when" })), el("p", { class: "snippet" })),
      (item, one) => {
        text(item.firstElementChild.lastElementChild, WORDS[one.state] ?? one.state);
        set(item.firstElementChild.lastElementChild, "class", `when ${one.state}`);
        text(item.lastElementChild, snippet(one, "payload"));
      });
  }

  /** What was searched, and what was not. */
  function sentence(answer, names) {
    const parts = [];
    const ended = (done) => (answer.more ? "" : done + answer.lost === answer.queues ? ", since the servers of the others do not answer" : ", then time was up");
    const isAll = answer.searched === answer.queues;
    const whole = isAll ? `Looked for this id in ${many(answer.queues, "queue")}` : `Looked for this id in ${count(answer.searched)} of ${many(answer.queues, "queue")}${ended(answer.searched)}`;
    const begin = answer.scanned === answer.queues ? `for ids that begin with it among ${many(answer.looked, "message")}` : `for ids that begin with it among ${many(answer.looked, "message")} (${count(answer.scanned)} of ${many(answer.queues, "queue")} were searched wholly)${ended(answer.scanned)}`;
    parts.push(`${whole}, and ${begin}. Payloads are not searched.`);
    parts.push(answer.found.length === 0 ? "No message found." : answer.more ? `${count(answer.found.length)} shown, more exist.` : `${many(answer.found.length, "message")} found.`);
    if (names.total > names.queues.length) parts.push(`${count(names.total)} queues have it in their name, of which ${count(names.queues.length)} are listed.`);
    return parts.join(" ");
  }
  return { kind: `search ${JSON.stringify(params)}`, title: "Search", node, read: refresh, once: true };
}
