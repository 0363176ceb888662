/** Sends outcomes to the server in one go, together with the next pop if there is one. */
import type { Word } from '../bytes.js';
import type { Link } from '../drivers.js';
import { isTransient } from '../errors.js';
import { unpacked } from '../job.js';
import { answered } from '../route.js';
import { type Lane, MARGIN_MS, type Report } from './lane.js';

// What follows these in an outcome is bytes.
const BINARY = new Set(['ERROR', 'RESULT']);

/**
 * Reports outcomes, and pops without waiting if words of a pop are given. Returns the messages. What the server cannot do
 * now is kept, and the error thrown; what it refuses for good is told.
 */
export async function settle(lane: Lane, link: Link, reports: Report[], pop?: Word[]): Promise<unknown> {
  const acks = reports.filter(({ outcome }) => outcome[0] === 'DQ.ACK');
  const others = reports.filter(({ outcome }) => outcome[0] !== 'DQ.ACK');
  const receipts = acks.map(receiptOf);
  const count = String(acks.length);
  const sent: [Report[], Promise<unknown>][] = others.map((report) => [[report], link.send(wordsOf(lane, report))]);
  if (pop && acks.length > 0) sent.push([acks, link.send(['DQ.ACKPOP', lane.key, count, ...receipts, ...pop])]);
  else if (acks.length > 0) sent.push([acks, link.send(['DQ.ACK', lane.key, ...receipts])]);
  if (pop && acks.length === 0) sent.push([[], link.send(['DQ.POP', lane.key, ...pop])]);
  const all = Promise.allSettled(sent.map(([, reply]) => reply));
  let replies: PromiseSettledResult<unknown>[];
  try {
    replies = await answered(link, all, MARGIN_MS);
  } catch (error) {
    lane.again(reports);
    throw error;
  }
  const again: Report[] = [];
  let failure: unknown;
  let messages: unknown = null;
  replies.forEach((reply, at) => {
    const told = sent[at]?.[0] as Report[];
    const isPop = pop !== undefined && at === replies.length - 1;
    if (reply.status === 'fulfilled') {
      for (const report of told) lane.answered(report);
      if (isPop) messages = acks.length > 0 ? (reply.value as unknown[])[1] : reply.value;
    } else if (isTransient(reply.reason) || isPop) {
      again.push(...told);
      failure = reply.reason;
    } else {
      lane.complain(reply.reason, 'an outcome was refused: ');
      for (const report of told) lane.answered(report);
    }
  });
  if (again.length > 0) lane.again(again);
  if (failure) throw failure;
  return messages;
}

function receiptOf({ delivery }: Report): Buffer {
  return unpacked(delivery.delivered.receipt);
}

function wordsOf(lane: Lane, report: Report): Word[] {
  const [command, ...words] = report.outcome;
  const rest = words.map((word, at) => (BINARY.has(words[at - 1] ?? '') ? unpacked(word) : word));
  return [command, lane.key, receiptOf(report), ...rest];
}
