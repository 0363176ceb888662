// How many messages recur, for the questions about all messages of a state: a purge leaves schedules, and a run runs them.

import { read } from "./api.js";
import { count } from "./format.js";

/** How long they are counted at most, in ms: for it all messages of a queue have to be looked at. */
const COUNTING = 4000;

/** The schedules of these queues by the states of their messages. `isPartial`: there was no time, or no right, to look at all messages. */
export async function countSchedules(queues) {
  const end = Date.now() + COUNTING;
  const found = { isPartial: false };
  for (const queue of queues) {
    let cursor = "0";
    do {
      found.isPartial ||= Date.now() >= end;
      if (found.isPartial) return found;
      const answer = await read("schedules", { ...queue, cursor, count: 500 }).catch(() => null);
      for (const { state } of answer?.messages ?? []) found[state] = (found[state] ?? 0) + 1;
      found.isPartial = answer === null;
      cursor = answer?.cursor ?? "0";
    } while (cursor !== "0");
  }
  return found;
}

/** What a question says of the schedules among its messages; nothing if there are none. */
export function ofThem(number, isPartial, one, several) {
  if (number === 0) return isPartial ? ` Not all could be looked at in time: schedules may be among them, ${several}.` : "";
  return ` ${isPartial ? "At least " : ""}${count(number)} of them ${number === 1 ? `is a schedule, ${one}` : `are schedules, ${several}`}.`;
}
