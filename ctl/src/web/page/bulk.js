// What is done with several queues together: a question that says how many messages of how many queues are meant, and a result that says
// how far it came.

import { Problem, write } from "./api.js";
import { keepsDead } from "./command.js";
import { DELAY, given, PAUSE_FOR } from "./fields.js";
import { count, many, param, shown } from "./format.js";

/** How many messages one request changes, so that there is progress to show and other clients do not wait. */
const STEP = 10000;
/** Queues that a question names, at most. */
const NAMED = 5;

/**
 * By their names: the action of the API with its body, and its words. Those with a `state` change all of its messages, of which the answer
 * counts those in `field`; others change the queues that `fits`.
 */
const ACTS = {
  pause: { verb: "Pause", done: "Paused", action: "pause", fields: [PAUSE_FOR], words: "Nothing is delivered until they are resumed. Pushes, retries and leases go on" },
  resume: { verb: "Resume", done: "Resumed", action: "resume", body: { flow: "out" }, fits: (row) => row.paused, others: "not paused", words: "Consumers get messages again, at once" },
  close: { verb: "Close", done: "Closed", action: "pause", body: { flow: "in" }, fields: [{ ...PAUSE_FOR, hint: PAUSE_FOR.hint.replace("resumed", "opened") }], words: "New messages are refused until they are opened. Consumers go on, so they can be drained" },
  open: { verb: "Open", done: "Opened", action: "resume", body: { flow: "in" }, fits: (row) => row.closed, others: "not closed", words: "Producers can push again" },
  redrive: { verb: "Redrive", done: "Redriven", action: "redrive", state: "dead", field: "redriven", fields: [DELAY], words: "They become ready again, with no attempts, and their errors are cleared" },
  promote: { verb: "Run now", done: "Due now", action: "promote", state: "delayed", field: "promoted", words: "They become due at once, also those that wait for a retry or for the next run of a schedule" },
  purge: { verb: "Delete", done: "Deleted", action: "purge", body: { state: "dead" }, state: "dead", field: "purged", danger: true, words: "They are removed for good" },
};
/** What can be done, in the order of the buttons. */
export const WORDS = { pause: "Pause…", resume: "Resume…", close: "Close…", open: "Open…", redrive: "Redrive all dead…", promote: "Run all delayed now…", purge: "Delete all dead…" };

/** Whether an action would change something about a queue. */
export function concerns(what, row) {
  const { state, fits } = ACTS[what];
  return state ? row[state] > 0 : !fits || Boolean(fits(row));
}

export function isDanger(what) {
  return Boolean(ACTS[what].danger);
}

/** The question, for `ask`. `report` is told what was done, and `more` is said besides. No more messages are changed than the question says. */
export function aboutQueues(what, selected, report, more = "") {
  const { verb, done, action, body, state, field, fields = [], danger, words, others } = ACTS[what];
  const rows = selected.filter((row) => concerns(what, row));
  /** What is left of each queue: a second attempt after a failure goes on from there. */
  const left = new Map(rows.map((row) => [row, state ? row[state] : 1]));
  const total = rows.reduce((sum, row) => sum + left.get(row), 0);
  const queues = many(rows.length, "queue");
  const rest = selected.length - rows.length;
  let [changed, finished, gone] = [0, 0, 0];

  /** What is to be changed, or was. */
  const of = (messages, number) => (state ? `${many(messages, "message")} of ${number}` : number);

  function result() {
    const part = finished < rows.length - gone ? `${count(finished)} of ${queues}` : many(finished, "queue");
    return `${done}: ${of(changed, part)}.${gone > 0 ? ` ${many(gone, "queue")} had been deleted meanwhile.` : ""}`;
  }

  async function changeOne(row, values, progress) {
    do {
      const step = Math.min(STEP, left.get(row));
      const answer = await write(action, { ...param(row, "queue"), ...body, ...given(values), ...(state ? { count: step } : {}) });
      const did = state ? answer[field] : 1;
      changed += did;
      // Fewer than asked for: somebody else has changed the others.
      left.set(row, did < step ? 0 : left.get(row) - did);
      progress(`${count(changed)} of ${count(total)}…`);
    } while (left.get(row) > 0);
  }

  async function run(values, progress) {
    for (const row of rows.filter((one) => left.get(one) > 0)) {
      try {
        await changeOne(row, values, progress);
        finished += 1;
      } catch (problem) {
        if (problem.status !== 404) throw new Problem(problem.status, `${result()} Then ${shown(row, "queue")}: ${problem.message}`);
        left.set(row, 0);
        gone += 1;
      }
    }
    report(result());
  }

  const names = rows.slice(0, NAMED).map((row) => `${shown(row, "queue")}${state ? ` (${count(row[state])})` : ""}`);
  const unnamed = rows.length > NAMED ? ` and ${many(rows.length - NAMED, "other queue")}` : "";
  const ready = rows.reduce((sum, row) => sum + row.ready, 0);
  const waits = what === "pause" || what === "resume" ? ` Ready: ${many(ready, "message")}.` : "";
  const keeps = state === "dead" ? keepsDead(rows.length === 1 ? shown(rows[0], "queue") : "QUEUE") : "";
  const messages = state && many(total, `${state} message`);
  return {
    title: state === "delayed" ? `Run ${messages} of ${queues} now?` : state ? `${verb} ${messages} of ${queues}?` : `${verb} ${queues}?`,
    words: `${words}: ${names.join(", ")}${unnamed}.${more}${waits}${rest > 0 ? ` Left alone: ${many(rest, "selected queue")} ${state ? `without a ${state} message` : `(${others})`}.` : ""}${keeps}`,
    fields, confirm: verb, danger, run,
  };
}
