// Everything that changes something: a question, then the request, then a line about its outcome.

import { Problem, read, write } from "./api.js";
import { ask as question, moment, number, SPAN_HINT, time } from "./ask.js";
import { aboutQueues } from "./bulk.js";
import { keepsDead } from "./command.js";
import { DELAY, given, isText, PAUSE_FOR, payloadOf, rest, scheduleFields, unchanged, WHOLE } from "./fields.js";
import { count, exactSpan, many, now, param, shown } from "./format.js";
import { countSchedules, ofThem } from "./recurring.js";

/** How many messages one request redrives, promotes or purges, so that there is progress to show. */
const STEP = 10000;
const STATES = [["dead", "dead"], ["ready", "ready"], ["delayed", "delayed"], ["inflight", "in flight"], ["done", "done"]];
/** Settings that are given together. */
const PAIRS = [["backoff-base", "backoff-max", "backoff-jitter"], ["rate", "rate-period"], ["grouprate", "grouprate-period"]];
const DONE = { Cancel: "Cancelled", Delete: "Deleted", Forget: "Forgotten", Redrive: "Redriven", Bury: "Buried", "Run now": "Due now" };
const BURIED = "Dead, but kept, and can be redriven";

const ACKS = "Consumers are working on them; their acks will have no effect.";
/** Queues that a question names, at most. */
const NAMED = 5;
const ERROR = { name: "error", label: "Error (optional)", hint: "Why, for whoever looks at the message later." };
const ATTEMPT = { name: "nocount", label: "The attempt", options: [["", "counts: a retry is spent"], ["no", "does not count"]] };
/** What becomes of the schedules among messages that are changed together: of one, and of several. */
const RUNS = ["which runs at once", "which run at once"];
const SCHEDULES = { promote: RUNS, delete: ["which makes no more runs", "which make no more runs"], bury: ["whose next run fails", "whose next runs fail"] };
const GIVE_BACK = [{ ...DELAY, hint: `${SPAN_HINT} 0: now. Empty: after the backoff of the queue.` }, ERROR, ATTEMPT];

/** The actions on a queue, which is a parameter of the API; `{}` if the question asks for it. */
export function actions(shared, queue) {
  const title = shown(queue, "queue");

  /** Asks a question. A change that fails after its question was left is not lost sight of. */
  function ask(parts) {
    question({ ...parts, left: (problem) => shared.say(`Failed: ${parts.title.replace(/\?$/, "")}. ${problem.message}`) });
  }

  /** Sends an action and reads the view again. */
  async function act(action, body, words) {
    const answer = await write(action, { ...queue, ...body });
    report(typeof words === "function" ? words(answer) : words);
  }

  /** Says what was done, and reads the view again, also what it would not read again so soon. */
  function report(words) {
    shared.changes += 1;
    shared.say(words);
    shared.refresh();
  }

  /** Sends an action for many messages, in steps, until it was done for `total`, or none is left. */
  async function actInSteps(action, body, field, total, progress, words) {
    let did = 0;
    while (did < total) {
      const step = Math.min(STEP, total - did);
      const answer = await write(action, { ...queue, ...body, count: step });
      did += answer[field];
      progress(`${count(did)} of ${count(total)}…`);
      if (answer[field] < step) break;
    }
    report(words(did));
  }

  /** Sends an action for one message after the other. Those that are in another state by now are left alone. */
  async function actOnEach(action, bodies, progress, words) {
    let did = 0;
    for (const [nth, body] of bodies.entries()) {
      try {
        await write(action, { ...queue, ...body });
        did += 1;
      } catch (problem) {
        if (problem.status !== 404) throw new Problem(problem.status, `${did} of ${many(bodies.length, "message")} done, then: ${problem.message}`);
      }
      progress(`${count(nth + 1)} of ${count(bodies.length)}…`);
    }
    report(`${words}: ${many(did, "message")}.${did < bodies.length ? ` ${count(bodies.length - did)} had changed meanwhile.` : ""}`);
  }

  /** What was sent back, and why not all of it. */
  function sentBack(did, left) {
    return `Sent back: ${many(did, "message")}.${left > 0 ? ` Left here: ${many(left, "message")}, which a consumer has, or of which the former queue has the id again, is gone, or does not move its dead here.` : ""}`;
  }

  /**
   * The count is asked for before the question, so that it is one of this moment, and no more than that are changed. If they cannot be
   * counted in time, the question is about all of them.
   */
  async function changeDead(what, filter) {
    const conditions = conditionsOf(filter);
    const { older = 0, ...others } = filter;
    const selected = { ...queue, ...others, before: now() - older };
    shared.say("Counting…");
    const { selected: total, recurring, partial, origins } = await read("dead", { ...selected, count: 1 });
    shared.say("");
    const state = filter.state ?? "dead";
    const noun = state === "letters" ? "dead letter" : `${state === "inflight" ? "delivered" : state} message`;
    const verb = verbOf(what, state);
    const from = shown(filter, "from");
    const named = from ? [from] : partial ? [] : origins.map((one) => shown(one, "from"));
    const redriven = state === "letters" ? backTo(named) : "Ready again, with no attempts and no errors";
    const [doing, fields] = { redrive: [redriven, [DELAY]], bury: [BURIED, [ERROR]], promote: ["Due at once", []], delete: ["Removed for good", []] }[what];
    const number = partial ? `all ${noun}s` : many(total, noun);
    const warning = [partial && `Not all could be counted in time: there are at least ${count(total)}.`, state === "inflight" && ACKS, what in SCHEDULES && !["dead", "letters", "done"].includes(state) && ofThem(recurring, partial, ...SCHEDULES[what]).trim()].filter(Boolean);
    const isNone = total === 0 && !partial;
    let [did, left, cursor] = [0, 0, "0"];
    ask({
      title: partial ? `${verb} all ${noun}s of ${title}${conditions.length > 0 ? " that these conditions select" : ""}?` : `${verb} ${many(total, noun)} of ${title}?`,
      words: isNone ? `No ${noun} is selected by these conditions any more.` : [`${doing}: ${[number, ...conditions].join(" ")}.`, ...warning].join(" ") + (state === "dead" && !isNone ? keepsDead(title) : ""),
      fields,
      confirm: verb,
      danger: what === "delete",
      run: async (values, progress) => {
        do {
          if (isNone) break;
          const answer = await write("dead", { ...selected, do: what, cursor, ...given(values), ...(partial ? {} : { count: total - did }) });
          did += answer.changed;
          left += answer.left;
          cursor = answer.cursor;
          progress(`${count(did)} ${partial ? "so far" : `of ${count(total)}`}…`);
        } while (cursor !== "0");
        report(verb === "Send back" ? sentBack(did, left) : `${DONE[verb]}: ${many(did, "message")}.`);
      },
    });
  }

  /** Counts the schedules of these queues, for a question that `make` makes of them. */
  async function askOfSchedules(queues, make) {
    shared.say("Counting…");
    const recurring = await countSchedules(queues);
    shared.say("");
    ask(make(recurring));
  }

  /** Pushes what was edited. A payload that is no text is pushed as it is. */
  function pushCopy(found, values, more = {}) {
    const payload = isText(found) ? { payload: values.payload } : { "payload-base64": found["payload-base64"] };
    return act("push", { ...given(values), ...payload, ...more }, (answer) => `Pushed: ${shown(answer, "id")}${more.replace ? ", in place of the dead message" : ""}.`);
  }

  /** Pushes in place of a dead message. A message that lives again is left alone. */
  async function replaceDead(shownId, found, values) {
    if (values.id) throw new Error(`Another id: leave it empty, because the new message has the id ${shownId}.`);
    const id = param(found, "id");
    const { message } = await read("message", { ...queue, ...id });
    if (message.died !== found.died) throw new Error(`${shownId} is ${message.state} now: somebody has changed it meanwhile.`);
    return pushCopy(found, values, { ...id, replace: true });
  }

  /** Declares a schedule again, with what it has and what is changed of it. */
  async function editSchedule(id, shownId) {
    const [{ message: found }, { info }] = await Promise.all([read("message", { ...queue, ...id }), read("queue", queue)]);
    if (found["payload-size"] > WHOLE) throw new Error(`the payload of ${shownId} is too large to be edited here: declare it again with dqctl schedule`);
    // What is no text cannot be shown, and stays.
    const kept = { ...(isText(found) ? {} : { "payload-base64": found["payload-base64"] }), ...(found["group-base64"] ? { "group-base64": found["group-base64"] } : {}) };
    ask({
      title: `Edit the schedule ${shownId} of ${title}`,
      words: `The next run keeps its due time, unless the rule is changed. A run that has begun ends as it was.${unchanged(found)}`,
      fields: [...payloadOf(found), ...scheduleFields(found, info.lease)],
      confirm: "Declare",
      run: (values) => {
        const payload = isText(found) ? { payload: values.payload } : {};
        const group = values.group ? { "group-base64": undefined } : {};
        return act("schedule", { ...kept, ...id, ...given(values), ...payload, ...group }, (answer) => `Schedule ${shownId}: ${answer.schedule}.`);
      },
    });
  }

  return {
    pause: () => ask({
      title: `Pause ${title}?`,
      words: "Nothing is delivered until the queue is resumed. Pushes, retries and leases go on.",
      fields: [PAUSE_FOR],
      confirm: "Pause",
      run: (values) => act("pause", given(values), `Paused ${title}.`),
    }),
    resume: () => ask({ title: `Resume ${title}?`, words: "Consumers get messages again, at once.", confirm: "Resume", run: () => act("resume", { flow: "out" }, `Resumed ${title}.`) }),
    queues: (what, rows) => {
      if (what !== "promote") return ask(aboutQueues(what, rows, report));
      const queues = rows.filter((row) => row.delayed > 0).map((row) => param(row, "queue"));
      return askOfSchedules(queues, ({ delayed = 0, isPartial }) => aboutQueues(what, rows, report, ofThem(delayed, isPartial, ...RUNS)));
    },
    close: () => ask({
      title: `Close ${title}?`,
      words: "New messages are refused until the queue is opened. Consumers go on, so it can be drained.",
      fields: [{ name: "for", label: "For (optional)", hint: `${SPAN_HINT} Empty: until it is opened.`, parse: time }],
      confirm: "Close",
      run: (values) => act("pause", { flow: "in", ...given(values) }, `Closed ${title}.`),
    }),
    open: () => ask({ title: `Open ${title}?`, words: "Producers can push again.", confirm: "Open", run: () => act("resume", { flow: "in" }, `Opened ${title}.`) }),
    pauseGroup: (group, shownGroup) => ask({
      title: `Pause the group ${shownGroup}?`,
      words: `No message of this group of ${title} is delivered until it is resumed. Other groups go on.`,
      fields: [PAUSE_FOR],
      confirm: "Pause",
      run: (values) => act("pause", { ...group, ...given(values) }, `Paused the group ${shownGroup}.`),
    }),
    // A group without messages can be paused too: those that come wait.
    pauseNamedGroup: () => ask({
      title: `Pause a group of ${title}`,
      words: "No message of this group is delivered until it is resumed, also of those that are pushed later.",
      fields: [{ name: "group", label: "Group", required: true }, PAUSE_FOR],
      confirm: "Pause",
      run: (values) => act("pause", given(values), `Paused the group ${values.group}.`),
    }),
    resumeGroup: (group, shownGroup) => ask({ title: `Resume the group ${shownGroup}?`, words: "Its messages are delivered again, at once.", confirm: "Resume", run: () => act("resume", group, `Resumed the group ${shownGroup}.`) }),
    redrive: (id, shownId) => ask({
      title: `Redrive ${shownId}?`,
      words: "The dead message becomes ready again, with no attempts, and its error is cleared.",
      confirm: "Redrive",
      run: () => act("redrive", id, `Redriven: ${shownId}.`),
    }),
    redriveMany: (info) => ask({
      title: `Redrive dead messages of ${title}?`,
      words: `Dead: ${many(info.dead, "message")}. The oldest become ready again first, with no attempts, and their errors are cleared.${keepsDead(title)}`,
      fields: [howMany(info.dead), DELAY],
      confirm: "Redrive",
      run: ({ count: number, delay }, progress) => actInSteps("redrive", delay === null ? {} : { delay }, "redriven", number, progress, (did) => `Redriven: ${many(did, "message")}.`),
    }),
    promote: (id, shownId) => ask({ title: `Run ${shownId} now?`, words: "The delayed message becomes due at once.", confirm: "Run now", run: () => act("promote", id, `Due now: ${shownId}.`) }),
    promoteMany: (info) => askOfSchedules([queue], ({ delayed = 0, isPartial }) => ({
      title: `Run delayed messages of ${title} now?`,
      words: `Delayed: ${many(info.delayed, "message")}, those that wait for a retry among them. The next ones become due at once.${ofThem(delayed, isPartial, ...RUNS)}`,
      fields: [howMany(info.delayed)],
      confirm: "Run now",
      run: ({ count: number }, progress) => actInSteps("promote", {}, "promoted", number, progress, (did) => `Due now: ${many(did, "message")}.`),
    })),
    redriveSome: (messages) => ask({
      title: `Redrive ${many(messages.length, "message")} of ${title}?`,
      words: "They become ready again, with no attempts, and their errors are cleared.",
      fields: [DELAY],
      confirm: "Redrive",
      run: (values) => act("redrive", { ...listOf(messages), ...given(values) }, (answer) => `Redriven: ${many(answer.redriven, "message")}.`),
    }),
    sendBackSome: (messages) => ask({
      title: `Send ${many(messages.length, "message")} of ${title} back?`,
      words: `${backTo(messages.map((message) => shown(message, "from") || shown(message.headers ?? {}, "dq-queue")))}.`,
      fields: [DELAY],
      confirm: "Send back",
      run: (values) => act("redrive", { ...listOf(messages), state: "letters", ...given(values) }, (answer) => sentBack(answer.redriven, answer.left)),
    }),
    cancelSome: (messages, state) => ask({
      title: `${removal(state)} ${many(messages.length, "message")} of ${title}?`,
      words: `They are removed for good.${state === "inflight" ? ` ${ACKS}` : ""}`,
      confirm: removal(state),
      danger: true,
      run: () => act("cancel", listOf(messages), (answer) => `${DONE[removal(state)]}: ${many(answer.cancelled, "message")}.`),
    }),
    // What a consumer has taken since is left to it.
    burySome: (messages) => ask({
      title: `Bury ${many(messages.length, "message")} of ${title}?`,
      words: `${BURIED}. Those that a consumer has taken meanwhile are left alone.`,
      fields: [ERROR],
      confirm: "Bury",
      run: (values) => act("bury", { ...listOf(messages), ...given(values) }, ({ buried }) => `Buried: ${many(buried, "message")}.${buried < messages.length ? ` ${count(messages.length - buried)} had changed meanwhile.` : ""}`),
    }),
    promoteSome: (messages) => ask({
      title: `Run ${many(messages.length, "message")} of ${title} now?`,
      words: "They become due at once.",
      confirm: "Run now",
      run: (values, progress) => actOnEach("promote", messages.map((message) => param(message, "id")), progress, "Due now"),
    }),
    giveBackSome: (messages) => ask({
      title: `Give ${many(messages.length, "message")} of ${title} back?`,
      words: "Their consumers lose them, and they are delivered again. Do this only if the consumers are gone or hang: one that still works would do the work twice.",
      fields: GIVE_BACK,
      confirm: "Give back",
      danger: true,
      run: (values, progress) => actOnEach("nack", messages.map((message) => givenBack(message, values)), progress, "Given back"),
    }),
    changeDead: (what, filter) => changeDead(what, filter).catch((problem) => shared.say(`Not possible: ${problem.message}`)),
    release: (consumer, shownName, messages) => ask({
      title: `Release what ${shownName} holds?`,
      words: `Ready again at once, as if their leases had expired: ${many(messages, "message")} of ${title}. Do this only if the consumer is gone: one that still works would do the work twice.`,
      fields: [ATTEMPT],
      confirm: "Release",
      danger: true,
      run: ({ nocount }) => act("release", { ...consumer, nocount: nocount === "no" }, (answer) => `Released: ${many(answer.released, "message")}.`),
    }),
    // The receipt names the delivery that was looked at: a later one is left alone.
    giveBack: (found, shownId) => ask({
      title: `Give ${shownId} back?`,
      words: "Its consumer loses it, and it is delivered again. Do this only if the consumer is gone or hangs: one that still works would do the work twice.",
      fields: GIVE_BACK,
      confirm: "Give back",
      danger: true,
      run: (values) => act("nack", givenBack(found, values), (answer) => `Given back: ${shownId} is ${answer.state}.`),
    }),
    bury: (id, shownId, found) => ask({
      title: `Bury ${shownId}?`,
      words: `The message becomes dead: it is kept, and can be redriven.${found.state === "inflight" ? " A consumer is working on it; its ack will have no effect." : ""}`,
      fields: [ERROR],
      confirm: "Bury",
      run: (values) => act("bury", { ...id, ...given(values) }, `Buried: ${shownId}.`),
    }),
    cancelBatch: (batch, shownBatch, left) => ask({
      title: `Cancel the batch ${shownBatch}?`,
      words: `${many(left, "message")} of it ${left === 1 ? "has" : "have"} not ended and ${left === 1 ? "is" : "are"} removed for good, also from their consumers. Dead ones stay. Nothing follows.`,
      confirm: "Cancel the batch",
      danger: true,
      run: () => act("cancel-batch", batch, (answer) => `Cancelled the batch ${shownBatch}: ${many(answer.cancelled, "message")} removed.`),
    }),
    schedule: () => ask({
      title: `Declare a schedule of ${title}`,
      words: "A schedule of the same id is replaced, and so is a message of that id that waits.",
      fields: [{ name: "id", label: "Id", required: true }, { name: "payload", label: "Payload", type: "textarea" }, ...scheduleFields()],
      confirm: "Declare",
      run: (values) => act("schedule", { ...given(values), payload: values.payload }, (answer) => `Schedule ${values.id}: ${answer.schedule}.`),
    }),
    editSchedule: (id, shownId) => editSchedule(id, shownId).catch((problem) => shared.say(`Not possible: ${problem.message}`)),
    alter: (fields) => ask({
      title: `Settings of ${title}`,
      words: "They apply at once. Messages that are there keep their due times, running leases, retries and TTL. A lower deadlen, deadttl or donelen drops dead or done messages at once; other limits drop none.",
      fields,
      confirm: "Change",
      run: (values) => {
        const was = Object.fromEntries(fields.map((field) => [field.name, field.was]));
        const isChanged = (name) => values[name] !== null && values[name] !== was[name];
        const partner = (name) => PAIRS.find((pair) => pair.includes(name)) ?? [name];
        const changed = Object.keys(values).filter((name) => partner(name).some(isChanged));
        if (changed.length === 0) throw new Error("Nothing is changed.");
        return act("alter", { settings: Object.fromEntries(changed.map((name) => [name, values[name] ?? was[name]])) }, `Changed: ${changed.join(", ")}.`);
      },
    }),
    cancel: (id, shownId, found) => {
      const verb = removal(found.state);
      const isSchedule = "every" in found || "cron" in found;
      return ask({
        title: `${verb} ${isSchedule ? "the schedule " : ""}${shownId}?`,
        words: `${found.state === "inflight" ? "A consumer is working on it; its ack will have no effect. " : ""}The message is removed for good${isSchedule ? ", and the schedule makes no more runs" : ""}.`,
        confirm: `${verb} ${isSchedule ? "schedule" : "message"}`,
        danger: true,
        run: () => act("cancel", id, `Removed: ${shownId}.`),
      });
    },
    purge: (info, tab) => askOfSchedules([queue], (recurring) => {
      const kept = (state) => (recurring[state] > 0 ? `${recurring.isPartial ? "at least " : ""}${many(recurring[state], "schedule stays", "schedules stay")}` : "");
      const of = (state) => `${recurring.isPartial ? "at most " : ""}${many(Math.max(0, info[state] - (recurring[state] ?? 0)), "message")}`;
      const held = STATES.filter(([state]) => info[state] > 0);
      return {
        title: `Purge ${title}?`,
        words: "All messages of one state are removed for good, except schedules, which end only if they are cancelled. The queue stays, with its settings and totals." + (info.dead > 0 ? keepsDead(title).replace("a copy", "a copy of the dead") : ""),
        fields: [{ name: "state", label: "State", options: held.map(([state, word]) => [state, `${word}: ${[of(state), kept(state)].filter(Boolean).join("; ")}`]), value: held.some(([state]) => state === tab) ? tab : held[0]?.[0] }],
        confirm: "Purge",
        danger: true,
        run: ({ state }, progress) => actInSteps("purge", { state }, "purged", info[state], progress, (did) => `Purged: ${many(did, "message")}.${kept(state) && ` Left: ${kept(state)}.`}`),
      };
    }),
    remove: (info) => {
      const held = STATES.filter(([state]) => info[state] > 0).map(([state, word]) => `${count(info[state])} ${word}`);
      return ask({
        title: `Delete the queue ${title}?`,
        words: `It is removed for good, with its settings, totals and schedules, and with ${held.length > 0 ? `its messages: ${held.join(", ")}` : "no message"}. A later push creates a new queue with the default settings.`,
        confirm: "Delete the queue",
        danger: true,
        run: () => act("delete", {}, `Deleted the queue ${title}.`),
      });
    },
    reschedule: (id, shownId, found) => ask({
      title: `Reschedule ${shownId}`,
      words: "Give a new due time, a new priority, or both. What is left empty stays.",
      fields: [
        { name: "delay", label: "Due in", hint: `${SPAN_HINT} 0: now.`, parse: time },
        { name: "at", label: "Or due at", type: "datetime-local", hint: "In the time zone of this device.", parse: moment },
        { name: "priority", label: "Priority", hint: `−128 to 127; now ${found.priority}. Higher is delivered first.`, parse: number(-128, 127) },
      ],
      confirm: "Reschedule",
      run: (values) => act("reschedule", { ...id, ...given(values) }, `Rescheduled: ${shownId}.`),
    }),
    push: () => ask({
      title: title ? `Push to ${title}` : "Push a message",
      fields: [
        ...(title ? [] : [{ name: "queue", label: "Queue", hint: "It is created if it does not exist.", required: true }]),
        { name: "payload", label: "Payload", type: "textarea", required: false },
        { name: "id", label: "Id (optional)", hint: "While the queue holds a message of this id, further pushes are duplicates." },
        ...rest({}),
        { name: "replace", more: true, label: "If the queue holds a message of this id", options: [["", "the push is refused"], ["yes", "it is replaced, also in flight"]] },
      ],
      confirm: "Push",
      run: ({ replace, ...values }) => act("push", { ...given(values), payload: values.payload, replace: replace === "yes" }, (answer) => `Pushed: ${shown(answer, "id")}.`),
    }),
    pushAgain: (shownId, found) => ask(found.state === "dead" ? {
      title: `Edit ${shownId} and push it again`,
      words: `The new message is ready at once, or when it is due.${unchanged(found)}`,
      fields: [
        ...payloadOf(found),
        { name: "old", label: "The dead message", options: [["replace", "is replaced, under its id"], ["", "stays as it is"]] },
        { name: "id", label: "Another id (optional)", hint: "For the new message, if the dead one stays. Empty: one is made." },
        ...rest(found),
      ],
      confirm: "Push",
      run: ({ old, ...values }) => (old === "replace" ? replaceDead(shownId, found, values) : pushCopy(found, values)),
    } : {
      title: `Push ${shownId} again as a new message`,
      words: `The message that is here stays as it is.${unchanged(found)}`,
      fields: [...payloadOf(found), { name: "id", label: "Id (optional)", hint: "Empty: a new one is made. The id of this message would be a duplicate." }, ...rest(found)],
      confirm: "Push",
      run: (values) => pushCopy(found, values),
    }),
  };
}

/** The names of queues in a question: all of them would be no question any more. */
function listed(names) {
  const others = names.length > NAMED ? ` and ${many(names.length - NAMED, "other queue")}` : "";
  return `${names.slice(0, NAMED).join(", ")}${others}`;
}

/** Where letters go, and what they lose on the way. */
function backTo(names) {
  const queues = [...new Set(names.filter(Boolean))];
  const named = queues.length > 0 ? ` (${listed(queues)})` : "";
  return `To ${queues.length === 1 ? "the queue" : "the queues"} in which they died${named}, with no attempts; their groups, and leases, retries and TTLs of their own, are not restored`;
}

/** The conditions of a filter of dead messages, in words that follow what they select. */
function conditionsOf(filter) {
  const words = [
    filter.cause !== undefined && `with the error “${filter.cause}”`,
    shown(filter, "from") !== "" && `that died in “${shown(filter, "from")}”`,
    filter.text !== undefined && `with “${filter.text}” in id, error, payload or group`,
    filter.group !== undefined && `of the group “${filter.group}”`,
    filter.older !== undefined && `${filter.state && filter.state !== "letters" ? "like this" : "dead"} for at least ${exactSpan(filter.older)}`,
    filter.attempts !== undefined && `after at least ${many(filter.attempts, "attempt")}`,
  ];
  return words.filter(Boolean).map((condition, nth) => (nth === 0 ? condition : `and ${condition}`));
}

/** What the button says that changes all messages of a filter. */
export function verbOf(what, state) {
  return what === "delete" ? removal(state) : what === "bury" ? "Bury" : what === "promote" ? "Run now" : state === "letters" ? "Send back" : "Redrive";
}

/** What the removal of a message is called. */
export function removal(state) {
  return { done: "Forget", dead: "Delete", letters: "Delete" }[state] ?? "Cancel";
}

/** The ids of messages as the API takes them. */
function listOf(messages) {
  return { ids: messages.flatMap(({ id }) => id ?? []), "ids-base64": messages.flatMap((message) => message["id-base64"] ?? []) };
}

/** What gives a delivery back: the receipt of the one that was looked at, and the answers to the question. */
function givenBack(found, { nocount, ...values }) {
  return { id: found.receipt, "id-base64": found["receipt-base64"], ...given(values), nocount: nocount === "no" };
}

function howMany(total) {
  return { name: "count", label: "How many", type: "number", value: total, hint: `All are ${count(total)}.`, required: true, parse: number(1, total) };
}
