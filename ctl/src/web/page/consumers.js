// Who holds messages, of all queues, the one that holds one for longest first: after a crash, whoever is gone. And which
// clients pop.

import { read } from "./api.js";
import { el, set, show, text } from "./dom.js";
import { address, count, distance, instant, many, param, shown } from "./format.js";
import { connections, releaseCell, showConnections, table } from "./holders.js";

const NO_NAME = "no name (pops without AS)";

export function consumers(params, shared) {
  const filter = el("input", { type: "search", id: "contains", value: params.contains ?? "", placeholder: "Consumer, queue, host", autocomplete: "off", autocapitalize: "none", spellcheck: "false", input: change });
  const range = el("p", { class: "range", role: "status" });
  const rows = table("holders everywhere", "Consumer", ["Queue", "Messages", "Longest since", "Connections"], held, "Release");
  const nothing = el("p", { class: "empty", hidden: true });
  const clients = table("holders clients", "Client", ["Host", "Library", "Connections", "Waiting", "Last active"], () => null);
  const unknown = el("p", { class: "empty", hidden: true });
  const node = el("div", { class: "consumers" }, el("div", { class: "head" }, el("h1", {}, "Consumers")),
    el("div", { class: "tools" }, el("div", { class: "field" }, el("label", { for: "contains" }, "Filter"), filter), range),
    el("section", { "aria-label": "consumers that hold messages" }, rows.node, nothing),
    el("section", { "aria-label": "clients that pop" }, el("h2", {}, "Clients that pop"), clients.node, unknown));

  /** To the messages that it holds. */
  function held(item) {
    return address("queue", { ...param(item, "queue"), tab: "inflight", ...(item.isNamed ? param(item, "consumer") : {}) });
  }

  /** The address follows, so that it can be shared. */
  function change() {
    history.replaceState(null, "", address("consumers", filter.value ? { contains: filter.value } : {}));
    shared.refresh();
  }

  async function refresh() {
    const contains = filter.value;
    // What was read of all queues may be older: that the server is down is known at once.
    shared.learn(await read("server"));
    const answer = await read("consumers", contains ? { contains } : {});
    // An answer to an earlier question is not shown.
    if (contains !== filter.value) return;
    const items = answer.consumers.map((item) => ({ ...item, isNamed: "consumer" in item, consumer: item.consumer ?? NO_NAME }));
    showConnections(rows.node, items);
    rows.draw(items, (item) => [[shown(item, "queue"), null, address("queue", { ...param(item, "queue"), tab: "consumers" })], [count(item.messages)], [distance(item.since), instant(item.since)], connections(item)],
      (item) => (item.isNamed ? releaseCell(shared, param(item, "queue"), item) : el("td", { class: "write", role: "cell" })),
      (row, item) => { if (item.isNamed) row.lastElementChild.firstElementChild.messages = item.messages; });
    show(nothing, items.length === 0);
    text(nothing, answer.searching ? "Looking for consumers…" : contains ? `No consumer that holds a message, and no queue of one, has “${contains}” in its name.` : "No consumer holds a message.");
    drawClients(answer, contains);
    text(range, answer.searching ? "" : sentence(answer, items.length));
    set(range, "title", "A consumer without a name is shown if it has held a message for longer than those with a name.");
  }

  /** Also those that hold no message: whether the workers of a host are there. */
  function drawClients({ clients: items, searching, "searching-clients": isSearching }, contains) {
    clients.draw((items ?? []).map((item) => ({ ...item, client: item.client || "no name" })),
      (item) => [[item.host], [item.library || "–"], [count(item.connections)], [count(item.waiting)], [distance(item["last-active"]), instant(item["last-active"])]]);
    show(unknown, !items?.length);
    text(unknown, searching || isSearching ? "Looking for clients…" : !items ? "The server tells them to users with the rights +client|list and +client|info." : contains ? `No client that pops has “${contains}” in its name or host.` : "The last command of no client was a pop.");
  }

  /** What is listed, and what was not read. */
  function sentence({ total, queues, read: looked }, listed) {
    const part = listed < total ? `The ${count(listed)} that hold a message for longest of ` : "";
    const unread = looked < queues ? `; ${count(queues - looked)} of ${many(queues, "queue")} were not read, so there may be more` : "";
    return total > 0 || unread ? `${part}${many(total, "row")}, one for each consumer of a queue${unread}.` : "";
  }
  return { kind: "consumers", title: "Consumers", node, read: refresh };
}
