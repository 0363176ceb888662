/** What surrounds pushes and handlers: headers that producers add, and what consumers make of them. */
import type { Job } from './job.js';

/** Surrounds pushes and handlers. Given to queues and workers. */
export interface Middleware {
  /** May add headers to what is pushed to a queue. */
  push?(queue: string, headers: Record<string, string | Uint8Array>): void;
  /** Calls the handler, or what surrounds it. */
  handle?(job: Job, next: () => Promise<unknown>): Promise<unknown>;
}
