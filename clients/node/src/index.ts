/** Delayed jobs and workers for dq, the delay queue module of Redis and Valkey. */
export type { Bytes } from './bytes.js';
export * from './errors.js';
export type { BatchInfo, MessageFields, QueueInfo, State } from './fields.js';
export { Job } from './job.js';
export type { Middleware } from './middleware.js';
export type * from './options.js';
export { type Added, Queue, type QueueOptions } from './queue.js';
export type { Handler, HandlerContext } from './runner.js';
export { closeOnSignals, Worker, type WorkerEvents, type WorkerOptions } from './worker.js';
