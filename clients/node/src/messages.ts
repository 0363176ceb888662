/** The messages between the threads of a worker. Bytes travel as Latin-1 strings: see `job.ts`. */
import type { MessagePort } from 'node:worker_threads';
import type { Target } from './drivers.js';
import type { LossReason } from './errors.js';
import type { Delivered } from './job.js';

/** One queue of a worker, as the thread that speaks with the server knows it. */
export interface LaneConfig {
  /** Names the lane in messages. */
  lane: number;
  key: string;
  concurrency: number;
  lease?: number;
  timeLimit?: number;
  /** Whether handlers run in a thread of their own, which can be ended. */
  hasThread: boolean;
  /** The name under which `DQ.CONSUMERS` lists the worker. */
  consumer: string;
  target: Target;
  /** See `Shared`. */
  shared: Float64Array;
}

/** The places in the memory that all threads of a worker share. */
export enum Shared {
  /** 1 once the worker takes no further messages. */
  Stopping = 0,
  /** When the server answered last, by `monotonic()`. */
  LastAnswer = 1,
  /** For how many milliseconds an answer may be missing in a healthy worker. */
  Patience = 2,
  /** Since when pops have failed, by `monotonic()`; 0 if they succeed. */
  RefusedSince = 3,
  /** The token of the last message whose handler has begun. Handlers begin in the order of tokens. */
  Begun = 4,
}

/** How many places there are. */
export const SHARED_PLACES = 5;

/** From the main thread to the thread that speaks with the server. */
export type Order =
  | { kind: 'add'; config: LaneConfig; port: MessagePort }
  | { kind: 'stop'; lane: number; grace: number }
  /** The thread of the handlers ended; another one listens at this port. */
  | { kind: 'attach'; lane: number; port: MessagePort; error: string };

/** From the thread that speaks with the server to the main thread. */
export type Notice =
  | { kind: 'ready'; lane: number }
  | { kind: 'lost'; lane: number; delivered: Delivered; reason: LossReason }
  | { kind: 'error'; lane: number; text: string; delivered?: Delivered }
  /** The server has recorded the failure of a handler. */
  | { kind: 'failed'; lane: number; text: string; delivered: Delivered; isDead: boolean }
  /** A handler has reached its time limit, and its thread does not answer. */
  | { kind: 'stuck'; lane: number }
  /** How many messages went back, and how many outcomes the server has not accepted. */
  | { kind: 'closed'; lane: number; givenBack: number; unanswered: number };

/** From the thread that speaks with the server to handlers. */
export interface ToHandlers {
  deliver?: Delivered[];
  lost?: { token: number; reason: LossReason };
  /** Whether an answer is wanted. */
  ping?: true;
}

/** How a delivery ended: its token, a command and what follows the receipt in it. No command: it had been lost. */
export type End = [token: number, command?: string, ...words: string[]];

/** From handlers to the thread that speaks with the server. */
export interface FromHandlers {
  ends?: End[];
  /** A handler begins, for its time limit. */
  begun?: number;
  save?: { token: number; checkpoint: string };
  /** The answer to a ping. */
  pong?: true;
}
