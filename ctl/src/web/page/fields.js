// The fields of several questions, most of them about a push.

import { headers, moment, number, SPAN_HINT, time } from "./ask.js";
import { typedSpan } from "./format.js";
import { indented } from "./payload.js";

/** A larger payload is cut by the server of the page, in bytes. */
export const WHOLE = 1024 * 1024;
export const DELAY = { name: "delay", label: "Due in (optional)", hint: `${SPAN_HINT} Empty: now.`, parse: time };
export const PAUSE_FOR = { name: "for", label: "For (optional)", hint: `${SPAN_HINT} Empty: until it is resumed.`, parse: time };

/** The answers to a question that were given. */
export function given(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== ""));
}

export function isText(found) {
  return typeof found.payload === "string";
}

/** What a question says of a payload that it cannot show. */
export function unchanged(found) {
  return isText(found) ? "" : " Its payload is no text, so it is pushed unchanged.";
}

/** The field for a payload that is pushed again. JSON is indented there; what nobody edits is pushed byte for byte as it was. */
export function payloadOf({ payload }) {
  if (typeof payload !== "string") return [];
  const json = indented(payload, false);
  const offered = json ?? payload;
  // A field of text turns all line breaks into its own.
  const parse = (words) => (words === offered.replace(/\r\n?/g, "\n") ? payload : words);
  const hint = offered === payload ? null : "This JSON is shown indented. If you edit it, it is pushed as it stands here; if not, as it was.";
  return [{ name: "payload", label: "Payload", type: "textarea", value: offered, hint, parse }];
}

/** The fields of a push that are seldom needed. */
export function rest(found) {
  return [
    DELAY,
    { name: "priority", label: "Priority (optional)", hint: "−128 to 127, by default 0. Higher is delivered first.", parse: number(-128, 127), value: found.priority || "" },
    { name: "group", label: "Group (optional)", value: found.group ?? "" },
    { name: "headers", more: true, label: "Headers (optional)", type: "textarea", value: found.headers ? JSON.stringify(found.headers, null, 2) : "", hint: 'A JSON object of texts: {"trace": "1f"}.', parse: headers },
    { name: "retries", more: true, label: "Retries (optional)", hint: "Empty: as the queue says. −1: no limit.", parse: number(-1, 2147483647) },
    { name: "lease", more: true, label: "Lease (optional)", hint: `${SPAN_HINT} Empty: as the queue says.`, parse: time },
    { name: "ttl", more: true, label: "TTL (optional)", hint: `${SPAN_HINT} 0: no limit. Empty: as the queue says.`, parse: time },
  ];
}

/** An instant as a field of a date and a time has it, in the time zone of this device. */
function typedMoment(at) {
  return new Date(at - new Date(at).getTimezoneOffset() * 60000).toISOString().slice(0, 16);
}

/** The fields of a schedule, with the values of one that is there: what is left out of a new declaration would be lost. */
export function scheduleFields(found = {}, queueLease = NaN) {
  const spanOf = (ms) => (ms > 0 ? typedSpan(ms) : "");
  const until = Number.isFinite(found.until) ? typedMoment(found.until) : "";
  // The lease of the queue is told as well, and is to stay that of the queue.
  const own = { retries: found.retries, lease: found.lease === queueLease ? "" : spanOf(found.lease), ttl: Number.isFinite(found.ttl) ? typedSpan(found.ttl) : "" };
  return [
    { name: "every", label: "Every", hint: `${SPAN_HINT} Counted from the Unix epoch.`, parse: time, value: spanOf(found.every) },
    { name: "cron", label: "Or by cron", hint: "Minute, hour, day of month, month, weekday: 0 3 * * *, or @daily.", value: found.cron },
    { name: "tz", label: "Time zone of cron (optional)", hint: "As in Europe/Berlin. Empty: UTC.", value: found.tz },
    { name: "until", label: "No run after (optional)", type: "datetime-local", hint: "In the time zone of this device.", value: until, parse: (words) => (words !== "" && words === until ? found.until : moment(words)) },
    { name: "times", label: "Number of runs (optional)", type: "number", hint: "The series ends after them, counted from this declaration on. Empty: no limit.", value: found["times-left"], parse: number(1, 2147483647) },
    { name: "offset", more: true, label: "Offset of every (optional)", hint: `Moves all runs by this time. ${SPAN_HINT}`, value: spanOf(found.offset), parse: time },
    ...rest(found).filter(({ name }) => name !== DELAY.name).map((field) => ({ ...field, value: own[field.name] ?? field.value })),
  ];
}
