package dq

import (
	"context"
	"time"
)

// Message is a delivery of a message to a handler.
type Message struct {
	Queue, ID string
	Payload   []byte
	// Attempt is 1 on the first delivery.
	Attempt int
	// Headers is never nil.
	Headers      map[string]string
	Priority     int
	Group        string
	Created, Due time.Time
	// Checkpoint is what an earlier attempt has stored with Save, and LastError how it ended.
	Checkpoint []byte
	LastError  string
	// Receipt names this delivery.
	Receipt string

	delivery *delivery
	result   []byte
}

// SetResult has a result kept with the message, if it has a [Retain], once its handler has returned nil. One of more
// than 65536 bytes is not kept: the message is completed without it, which is logged.
func (m *Message) SetResult(result []byte) { m.result = append([]byte{}, result...) }

// Save stores a checkpoint for the next attempt. While the server cannot be reached, or cannot store it, that is
// repeated. The error matches [ErrLost] if the message is no longer with this handler.
func (m *Message) Save(ctx context.Context, checkpoint []byte) error {
	d := m.delivery
	l := d.lane
	args := append([]any{"DQ.EXTEND", l.key, m.Receipt}, append(l.leaseWords(), "CHECKPOINT", checkpoint)...)
	var pauses backoff
	for {
		sent := time.Now()
		reply, err := l.worker.do.Do(ctx, args...)
		err = translate(err)
		switch {
		case err == nil && reply == nil:
			return ErrLost
		case err == nil:
			l.extended([]*delivery{d}, []any{reply}, sent, time.Now(), "lease")
			return nil
		case ctx.Err() != nil:
			return Cause(ctx)
		case !isTransient(err):
			return err
		}
		pause := time.NewTimer(pauses.next())
		select {
		case <-pause.C:
		case <-ctx.Done():
		case <-d.ctx.Done():
			pause.Stop()
			return Cause(d.ctx)
		}
	}
}

// Tracer carries the context of a trace from producers to handlers. README.md has one for OpenTelemetry.
type Tracer interface {
	// Inject adds the trace of ctx to the headers of a message that is pushed.
	Inject(ctx context.Context, headers map[string]string)
	// Start begins the span of an attempt: a child of the producer's span at the first attempt, later a new root with a
	// link to it. The function that it returns ends the span, with what the handler returned.
	Start(ctx context.Context, m *Message) (context.Context, func(error))
}

// Tracing has a client or a worker use a tracer.
func Tracing(tracer Tracer) SharedOption {
	return sharedOption{func(c *Client) { c.tracer = tracer }, func(w *Worker) { w.tracer = tracer }}
}
