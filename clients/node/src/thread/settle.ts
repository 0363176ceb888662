/** Sends outcomes to the server in one go, together with the next pop if there is one. */
import { text, type Word } from '../bytes.js';
import type { Link } from '../drivers.js';
import { unpacked } from '../job.js';
import { isTransient } from '../refusals.js';
import { answered } from '../route.js';
import { type Lane, MARGIN_MS, type Report } from './lane.js';

// The longest checkpoint that the server keeps. It refuses a nack with a longer one.
const CHECKPOINT_BYTES = 65_536;
// What follows these in an outcome is bytes.
const BINARY = new Set(['ERROR', 'RESULT']);

/**
 * Reports outcomes, and pops without waiting if words of a pop are given. Returns the messages. What the server cannot
 * do now is kept, and the error thrown; what it refuses for good is reported.
 */
export async function settle(lane: Lane, link: Link, reports: Report[], pop?: Word[]): Promise<unknown> {
  const acks = reports.filter(isAck);
  const commands: [Report[], Word[]][] = [];
  for (const report of reports) if (!isAck(report)) commands.push([[report], wordsOf(lane, report)]);
  const receipts = acks.map(receiptOf);
  if (pop && acks.length > 0) {
    commands.push([acks, ['DQ.ACKPOP', lane.key, String(acks.length), ...receipts, ...pop]]);
  } else if (acks.length > 0) commands.push([acks, ['DQ.ACK', lane.key, ...receipts]]);
  else if (pop) commands.push([[], ['DQ.POP', lane.key, ...pop]]);
  const sent = commands.map(([, words]) => link.send(words).catch((error: Error) => error));
  const replies = await answered(link, Promise.all(sent), MARGIN_MS).catch((error) => sent.map(() => error));
  let failure: unknown;
  let messages: unknown = null;
  commands.forEach(([about], at) => {
    const reply = replies[at];
    const isPop = pop !== undefined && at === commands.length - 1;
    if (reply instanceof Error && (isPop || isTransient(reply))) {
      lane.again(about);
      failure = reply;
      return;
    }
    if (isPop) messages = acks.length > 0 ? reply[1] : reply;
    for (const report of about) {
      const { delivery, outcome } = report;
      if (reply instanceof Error) lane.complain(reply, 'the outcome was refused: ', delivery.delivered);
      else if (outcome[0] === 'DQ.NACK' && outcome[1] !== 'NOCOUNT') lane.failed(report, text(reply));
      lane.answered(report);
    }
  });
  if (failure) throw failure;
  return messages;
}

function isAck({ outcome }: Report): boolean {
  return outcome[0] === 'DQ.ACK';
}

function receiptOf({ delivery }: Report): Buffer {
  return unpacked(delivery.delivered.receipt);
}

function wordsOf(lane: Lane, report: Report): Word[] {
  const [command, ...words] = report.outcome;
  const rest = words.map((word, at) => (BINARY.has(words[at - 1] ?? '') ? unpacked(word) : word));
  return [command, lane.key, receiptOf(report), ...rest, ...checkpointOf(report)];
}

/** A nack takes the checkpoint along that is not stored yet: by another connection it may overtake it. */
function checkpointOf({ delivery: { unsaved }, outcome: [command] }: Report): Word[] {
  if (command !== 'DQ.NACK' || unsaved === undefined) return [];
  const checkpoint = unpacked(unsaved.checkpoint);
  return checkpoint.length > CHECKPOINT_BYTES ? [] : ['CHECKPOINT', checkpoint];
}
