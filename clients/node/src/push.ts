/**
 * How pushes are sent: each is repeated under the same id until it is answered or its time is over, so that the message
 * is made once. Whether null is the answer to a duplicate, or to an earlier attempt, is decided here.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bytes, decode, encode, encoded, text, type Word } from './bytes.js';
import type { Client } from './connection.js';
import { ConnectionLost, type DeadId, OutOfMemory } from './errors.js';
import { type PushManyOptions, type PushOptions, wordsOf } from './options.js';
import { isNotNow, refused } from './refusals.js';
import { Backoff } from './route.js';

const PUSH_TIMEOUT_MS = 10_000;

/** Sends the commands of a queue. */
export class Sender {
  readonly #client: Client;
  readonly #key: Buffer;
  readonly #timeout: number;

  /**
   * A push is repeated for `timeout`, and any other command fails then; 0: each is sent once, and the server makes
   * ids.
   */
  constructor(client: Client, key: Buffer, timeout = PUSH_TIMEOUT_MS) {
    this.#client = client;
    this.#key = key;
    this.#timeout = timeout;
  }

  /** Sends a command that is not repeated once it may have been carried out. */
  ask(command: string, ...words: Word[]): Promise<unknown> {
    return this.askAll(command, words);
  }

  /** The same for more words than fit on the stack. */
  async askAll(command: string, words: readonly Word[]): Promise<unknown> {
    return (await this.#sent([command, this.#key, ...words], false)).reply;
  }

  /** Adds a message. Returns its id, and whether the queue held a message of this id already. */
  async push(payload: Bytes, options: PushOptions): Promise<{ id: string; duplicate: boolean }> {
    const given = { ...options };
    const made = (given.id ?? null) === null && this.#timeout > 0;
    if (made) given.id = randomUUID();
    const words = [encode(payload, 'the payload'), ...wordsOf.push(given)];
    const { reply, repeated } = await this.#sent(['DQ.PUSH', this.#key, ...words], true);
    // A null that answers a repeated push, or an id that nobody else has, means that the message is there.
    const id = text(reply) ?? decode(encode(given.id ?? ''));
    return { id, duplicate: reply === null && !repeated && !made };
  }

  /** Adds messages in one step. Returns an id, null for a duplicate, or an error for each. */
  async pushMany(
    payloads: readonly Bytes[],
    ids: readonly Bytes[] | undefined,
    options: PushManyOptions,
  ): Promise<(string | null | DeadId)[]> {
    const own = ids ?? (this.#timeout > 0 ? payloads.map(() => randomUUID()) : undefined);
    const words = [
      String(payloads.length),
      ...encoded(payloads, 'a payload'),
      ...(own ? ['IDS', ...encoded(own)] : []),
      ...wordsOf.pushMany(options),
    ];
    const { reply, repeated } = await this.#sent(['DQ.MPUSH', this.#key, ...words], true);
    return (reply as unknown[]).map((each, at) => {
      if (each instanceof Error) return refused(each.message) as DeadId;
      // A null as in `push`.
      return text(each) ?? (repeated || !ids ? decode(encode(own?.[at] ?? '')) : null);
    });
  }

  close(): void {
    this.#client.close();
  }

  /** Sends a command. Returns whether an earlier attempt may have been carried out. */
  async #sent(words: Word[], isPush: boolean): Promise<{ reply: unknown; repeated: boolean }> {
    const begun = performance.now();
    const backoff = new Backoff();
    for (let repeated = false; ; ) {
      let isSent = false;
      try {
        const left = this.#timeout > 0 ? begun + this.#timeout - performance.now() : PUSH_TIMEOUT_MS;
        const send = await this.#client.open(left);
        isSent = true;
        const sending = { times: 0 };
        const reply = await send(words, isPush ? Math.min(left, this.#client.silenceMs) : left, sending);
        return { reply, repeated: repeated || sending.times > 1 }; // A client that was given may repeat it by itself.
      } catch (error) {
        const isLost = error instanceof ConnectionLost;
        const later = isNotNow(error) || (isPush && error instanceof OutOfMemory);
        const again = isLost ? isPush || !isSent : later;
        const pause = backoff.next();
        if (!again || performance.now() + pause >= begun + this.#timeout) throw error;
        repeated ||= isSent && isLost && error.mayHaveRun;
        await sleep(pause);
      }
    }
  }
}
