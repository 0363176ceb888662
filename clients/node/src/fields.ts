/**
 * Messages, queues and batches as the server describes them; the pages of `docs/commands` describe each field. Times
 * are Unix milliseconds, durations are milliseconds.
 */

/** The states of messages. */
export type State = 'delayed' | 'ready' | 'inflight' | 'dead' | 'done';

/** A message as `DQ.GET` describes it. Its state and its options decide which fields it has besides the first five. */
export interface MessageFields {
  id: string;
  state: State;
  created: number;
  due: number;
  attempt: number;
  payload?: Buffer;
  priority?: number;
  retries?: number;
  lease?: number;
  ttl?: number;
  next?: number;
  retain?: number;
  group?: string;
  batch?: string;
  headers?: Record<string, string>;
  checkpoint?: Buffer;
  deadline?: number;
  receipt?: string;
  consumer?: string;
  error?: string;
  /** The errors of past attempts. */
  errors?: { attempt: number; at: number; error: string }[];
  reason?: string;
  died?: number;
  'lease-expired'?: number;
  every?: number;
  offset?: number;
  cron?: string;
  tz?: string;
  until?: number | null;
  'times-left'?: number | null;
  runs?: number;
  'failed-runs'?: number;
  'last-run'?: number | null;
  done?: number;
  result?: Buffer | null;
}

type Numbers<Names extends string> = Record<Names, number>;
type NumbersOrNull<Names extends string> = Record<Names, number | null>;

type Counts = Numbers<
  | 'delayed'
  | 'ready'
  | 'inflight'
  | 'dead'
  | 'done'
  | 'groups'
  | 'blocked'
  | 'known'
  | 'batches'
  | 'payload-bytes'
  | 'waiting-clients'
  | 'schedules'
  | 'consumers'
  | 'paused-groups'
  | 'paused'
  | 'closed'
>;

type Times = NumbersOrNull<
  | 'next-due'
  | 'oldest-ready'
  | 'oldest-inflight'
  | 'oldest-dead'
  | 'newest-dead'
  | 'last-death'
  | 'last-delivery'
  | 'paused-until'
  | 'closed-until'
  | 'next-delivery'
  | 'forward-failing-since'
  | 'deadforward-failing-since'
>;

type NumericSettings = Numbers<
  | 'lease'
  | 'retries'
  | 'backoff-base'
  | 'backoff-max'
  | 'backoff-jitter'
  | 'ttl'
  | 'maxlen'
  | 'maxinflight'
  | 'rate'
  | 'rate-period'
  | 'deadlen'
  | 'deadttl'
  | 'retain'
  | 'donelen'
  | 'maxpayload'
  | 'groupinflight'
  | 'grouprate'
  | 'grouprate-period'
  | 'errors'
  | 'dedupe'
  | 'maxlease'
  | 'delay'
>;

type Totals = Numbers<
  | 'pushed'
  | 'duplicates'
  | 'delivered'
  | 'acked'
  | 'nacked'
  | 'given-back'
  | 'lease-expired'
  | 'died'
  | 'expired'
  | 'redriven'
  | 'cancelled'
  | 'rejected-full'
  | 'forwarded'
  | 'deadforwarded'
>;

/** A queue as `DQ.INFO` describes it. */
export interface QueueInfo extends Counts, Times, NumericSettings, Totals {
  grouporder: 'due' | 'turn';
  forward: string;
  deadforward: string;
  'forward-error': string | null;
  'deadforward-error': string | null;
}

/** A batch as `DQ.BATCHINFO` describes it. Only one that is closed has a `then`. */
export interface BatchInfo extends Numbers<'total' | 'left' | 'acked' | 'dead' | 'cancelled' | 'closed' | 'created'> {
  then?: Buffer;
  'then-id'?: string;
}
