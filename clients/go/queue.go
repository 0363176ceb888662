package dq

import (
	"context"
	"errors"
	"time"
)

// Queue is a queue as producers and operators use it.
type Queue struct {
	client    *Client
	name, key string
}

// Name returns the name, without the [Prefix] of the client.
func (q *Queue) Name() string { return q.name }

// send sends a command.
func (q *Queue) send(ctx context.Context, args []any) (any, error) {
	reply, err := q.client.do.Do(ctx, args...)
	if err = translate(err); err != nil && ctx.Err() != nil && !isServerError(err) {
		err = &endedError{ctx.Err(), err}
	}
	return reply, err
}

func (q *Queue) ask(ctx context.Context, name string, args ...any) (any, error) {
	return q.send(ctx, append([]any{name, q.key}, args...))
}

// exec sends a command whose reply is of no interest.
func (q *Queue) exec(ctx context.Context, name string, args ...any) error {
	_, err := q.ask(ctx, name, args...)
	return err
}

func (q *Queue) count(ctx context.Context, name string, args ...any) (int, error) {
	reply, err := q.ask(ctx, name, args...)
	return int(integer(reply)), err
}

// Schedule declares a recurring message and returns "created", "changed" or "unchanged". It needs [Every] or [Cron].
func (q *Queue) Schedule(ctx context.Context, id string, payload []byte, options ...ScheduleOption) (string, error) {
	c := collect(ScheduleOption.forSchedule, options, id, payload)
	q.addHeaders(ctx, c)
	reply, err := q.ask(ctx, "DQ.SCHEDULE", c.args...)
	return text(reply), err
}

// Follow sets the message that follows once all messages that were pushed with this [Batch] have ended, and returns how
// many are left. It has the headers dq-batch, dq-batch-total, dq-batch-acked, dq-batch-dead and dq-batch-cancelled.
// This is sent once, because the batch may have ended when a second command came.
func (q *Queue) Follow(ctx context.Context, batch string, payload []byte, options ...FollowOption) (int, error) {
	c := collect(FollowOption.forFollow, options, batch, "THEN", payload)
	for _, id := range c.ids { // The server refuses a second one.
		c.add("ID", id)
	}
	q.addHeaders(ctx, c)
	return q.count(ctx, "DQ.BATCH", c.args...)
}

// CancelBatch removes the messages of a batch that are not dead, and what follows. It returns how many were removed.
func (q *Queue) CancelBatch(ctx context.Context, batch string) (int, error) {
	return q.count(ctx, "DQ.BATCH", batch, "CANCEL")
}

// BatchInfo returns the progress of a batch. The error is [ErrNotFound] if there is none.
func (q *Queue) BatchInfo(ctx context.Context, batch string) (*BatchInfo, error) {
	reply, err := q.ask(ctx, "DQ.BATCHINFO", batch)
	return found(newBatchInfo, reply, err)
}

// Cancel removes messages and returns the state that each was in, "" for those that were not there.
func (q *Queue) Cancel(ctx context.Context, ids ...string) ([]string, error) {
	reply, err := q.ask(ctx, "DQ.CANCEL", anys(ids)...)
	if err != nil {
		return nil, err
	}
	states := make([]string, len(ids))
	for i, state := range list(reply) {
		states[i] = text(state)
	}
	return states, nil
}

// Reschedule changes the due time or the priority of a message: [Delay], [At], [Priority]. It returns whether the
// message was delayed or ready.
func (q *Queue) Reschedule(ctx context.Context, id string, options ...RescheduleOption) (bool, error) {
	n, err := q.count(ctx, "DQ.RESCHEDULE", collect(RescheduleOption.forReschedule, options, id).args...)
	return n == 1, err
}

// Promote makes delayed messages due now and returns how many: all, a [Count], or those that are due [Until] a time.
func (q *Queue) Promote(ctx context.Context, options ...PromoteOption) (int, error) {
	return q.count(ctx, "DQ.PROMOTE", collect(PromoteOption.forPromote, options).args...)
}

// Redrive makes dead messages live again and returns how many: all, a [Count], those of some [IDs], those that have
// been dead for long ([Older]), or those that died for a [Reason].
func (q *Queue) Redrive(ctx context.Context, options ...RedriveOption) (int, error) {
	return q.count(ctx, "DQ.REDRIVE", collect(RedriveOption.forRedrive, options).args...)
}

// Purge removes messages and returns how many: all but schedules, those of some [States] or of a [Group], or those that
// have been in their state for long ([Older]).
func (q *Queue) Purge(ctx context.Context, options ...PurgeOption) (int, error) {
	return q.count(ctx, "DQ.PURGE", collect(PurgeOption.forPurge, options).args...)
}

// Len returns the number of messages of the queue, or of a [Group], in a state, or of all that are to be completed if
// the state is "".
func (q *Queue) Len(ctx context.Context, state string, options ...PeekOption) (int, error) {
	var states []any
	if state != "" {
		states = []any{state}
	}
	return q.count(ctx, "DQ.LEN", collect(PeekOption.forPeek, options, states...).args...)
}

// Declare creates the queue with these settings, or changes them if it exists. Programs call it when they start.
func (q *Queue) Declare(ctx context.Context, settings ...Setting) error {
	return q.exec(ctx, "DQ.ALTER", collect(Setting.forSettings, settings, "MKQUEUE").args...)
}

// Create creates the queue. It is an error if the queue exists with other settings.
func (q *Queue) Create(ctx context.Context, settings ...Setting) error {
	return q.exec(ctx, "DQ.CREATE", collect(Setting.forSettings, settings).args...)
}

// Alter changes settings. It is an error if the queue does not exist.
func (q *Queue) Alter(ctx context.Context, settings ...Setting) error {
	return q.exec(ctx, "DQ.ALTER", collect(Setting.forSettings, settings).args...)
}

// Flow is what a pause suspends.
type Flow string

const (
	// FlowOut is delivery.
	FlowOut Flow = "OUT"
	// FlowIn is the acceptance of new messages, which are then refused with [ErrQueueClosed].
	FlowIn Flow = "IN"
	// FlowAll is both.
	FlowAll Flow = "ALL"
)

// Pause suspends a flow for a time, or until [Queue.Resume] if it is 0.
func (q *Queue) Pause(ctx context.Context, flow Flow, d time.Duration) error {
	return q.pause(ctx, d, string(flow))
}

// PauseGroup suspends the delivery of one group for a time, or until [Queue.ResumeGroup] if it is 0.
func (q *Queue) PauseGroup(ctx context.Context, group string, d time.Duration) error {
	return q.pause(ctx, d, "GROUP", group)
}

func (q *Queue) pause(ctx context.Context, d time.Duration, args ...any) error {
	if d != 0 {
		args = append(args, "FOR", ms(d))
	}
	return q.exec(ctx, "DQ.PAUSE", args...)
}

// Resume resumes a flow. Groups that are paused stay so.
func (q *Queue) Resume(ctx context.Context, flow Flow) error {
	return q.exec(ctx, "DQ.RESUME", string(flow))
}

// ResumeGroup resumes the delivery of one group.
func (q *Queue) ResumeGroup(ctx context.Context, group string) error {
	return q.exec(ctx, "DQ.RESUME", "GROUP", group)
}

// Get returns a message, or [ErrNotFound].
func (q *Queue) Get(ctx context.Context, id string) (*Record, error) {
	reply, err := q.ask(ctx, "DQ.GET", id)
	return found(newRecord, reply, err)
}

// Peek returns the first messages of a state, of the queue or of a [Group], in the order in which they will leave it;
// dead and done ones newest first.
func (q *Queue) Peek(ctx context.Context, state string, n int, options ...PeekOption) ([]*Record, error) {
	reply, err := q.ask(ctx, "DQ.PEEK", collect(PeekOption.forPeek, options, state, "COUNT", n).args...)
	records := make([]*Record, len(list(reply)))
	for i, fields := range list(reply) {
		records[i] = newRecord(fields)
	}
	return records, err
}

// Info returns counts, settings and totals, or [ErrNotFound].
func (q *Queue) Info(ctx context.Context) (*Info, error) {
	reply, err := q.ask(ctx, "DQ.INFO")
	return found(newInfo, reply, err)
}

const (
	// A wait is made of shorter ones, which end before the read timeout of any usual client.
	awaitTime = 2 * time.Second
	// How long a result is kept for a caller without a deadline, or beyond the deadline.
	keptTime, keptExtra = time.Hour, time.Minute
)

// PushAndWait pushes a message and returns the result of its handler. It waits until ctx ends. If the message becomes
// dead, the error is a [*FailedError]. The result is nil if the handler set none.
func (q *Queue) PushAndWait(ctx context.Context, payload []byte, options ...PushOption) ([]byte, error) {
	if !collect(PushOption.forPush, options).retain {
		kept := keptTime
		if end, ok := ctx.Deadline(); ok {
			kept = time.Until(end) + keptExtra
		}
		options = append(options[:len(options):len(options)], Retain(kept))
	}
	id, err := q.Push(ctx, payload, options...)
	if err != nil && !errors.Is(err, ErrDuplicate) { // A duplicate is the same message.
		return nil, err
	}
	return q.Await(ctx, id)
}

// Await waits until a message is done and returns its result. It waits until ctx ends, through broken connections, too.
// The error is a [*FailedError] if the message becomes dead, [ErrNotFound] if it is gone, and [ErrResultTooLarge] if
// the result could not be kept.
func (q *Queue) Await(ctx context.Context, id string) ([]byte, error) {
	var pauses backoff
	var cause error
	for {
		reply, err := q.ask(ctx, "DQ.AWAIT", id, "BLOCK", ms(awaitTime))
		record, err := found(newRecord, reply, err)
		if errors.Is(err, ErrNotFound) { // It is gone, or the wait was too short.
			if record, err = q.Get(ctx, id); err != nil && !isTransient(err) {
				return nil, err
			}
		}
		switch {
		case ctx.Err() != nil && cause != nil:
			return nil, &endedError{ctx.Err(), cause}
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, ErrNotFound) || err != nil && !isTransient(err):
			return nil, err
		case err != nil:
			waitFor(ctx.Done(), pauses.next())
		case record.State == "dead":
			return nil, &FailedError{ID: id, Reason: record.Reason, Text: record.Error}
		case record.State == "done" && record.Result != nil && len(record.Result) == 0:
			return nil, ErrResultTooLarge
		case record.State == "done":
			return record.Result, nil
		}
		cause = err
	}
}
