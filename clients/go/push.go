package dq

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// pushTimeout is how long a push may take by default, with its repetitions.
const pushTimeout = 10 * time.Second

// Pushed is the outcome for one message of [Queue.PushMany].
type Pushed struct {
	ID string
	// Err is nil, ErrDuplicate, or an error that matches ErrDeadID.
	Err error
}

// Push adds a message and returns its id. If the queue holds a message of that [ID] already, the error is
// [ErrDuplicate].
func (q *Queue) Push(ctx context.Context, payload []byte, options ...PushOption) (string, error) {
	pushed, err := q.push(ctx, []any{"DQ.PUSH", q.key, payload}, "ID", 1, options)
	if err != nil {
		return "", err
	}
	return pushed[0].ID, pushed[0].Err
}

// PushJSON is [Queue.Push] for a value whose JSON is the payload, for a [HandleJSON].
func (q *Queue) PushJSON(ctx context.Context, value any, options ...PushOption) (string, error) {
	payload, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("dq: the payload cannot be JSON: %w", err)
	}
	return q.Push(ctx, payload, options...)
}

// PushMany adds messages in one step, with the [IDs] that are given, and returns the outcome for each.
func (q *Queue) PushMany(ctx context.Context, payloads [][]byte, options ...PushOption) ([]Pushed, error) {
	if len(payloads) == 0 {
		return nil, nil
	}
	args := []any{"DQ.MPUSH", q.key, len(payloads)}
	for _, payload := range payloads {
		args = append(args, payload)
	}
	return q.push(ctx, args, "IDS", len(payloads), options)
}

// push sends the first words of a command, the options, and the ids of n messages behind a word.
func (q *Queue) push(ctx context.Context, args []any, word string, n int, options []PushOption) ([]Pushed, error) {
	c := collect(PushOption.forPush, options, args...)
	q.addHeaders(ctx, c)
	if len(c.ids) > 0 && len(c.ids) != n {
		return nil, fmt.Errorf("dq: the number of payloads is %d, and that of ids is %d", n, len(c.ids))
	}
	made := len(c.ids) == 0 && q.client.pushTimeout > 0
	for made && len(c.ids) < n {
		c.ids = append(c.ids, newID())
	}
	if len(c.ids) > 0 {
		c.add(append([]any{word}, anys(c.ids)...)...)
	}
	reply, mayBeThere, err := q.repeat(ctx, c.args)
	if err != nil {
		return nil, err
	}
	replies := list(reply)
	if word == "ID" {
		replies = []any{reply}
	}
	pushed := make([]Pushed, n)
	for i, id := range c.ids {
		pushed[i].ID = id
	}
	for i, one := range replies {
		if refused := refusal(one); refused != nil {
			pushed[i].Err = refused
		} else if one != nil {
			pushed[i].ID = text(one)
		} else if !mayBeThere && !made { // Else an earlier copy has arrived, or nobody else has the id.
			pushed[i].Err = ErrDuplicate
		}
	}
	return pushed, nil
}

// addHeaders adds the headers that the options, the tracer and the hooks have set.
func (q *Queue) addHeaders(ctx context.Context, c *command) {
	if q.client.tracer != nil {
		q.client.tracer.Inject(ctx, c.headers)
	}
	for _, add := range q.client.onPush {
		add(ctx, q.name, c.headers)
	}
	if len(c.headers) > 0 {
		c.add("HEADERS", strconv.Itoa(len(c.headers)))
		for name, value := range c.headers {
			c.add(name, value)
		}
	}
}

// repeat sends a push until it is answered, and returns whether an earlier attempt may have been carried out.
func (q *Queue) repeat(ctx context.Context, args []any) (reply any, mayBeThere bool, err error) {
	timeout := q.client.pushTimeout
	switch {
	case timeout < 0:
		return nil, false, fmt.Errorf("dq: PushTimeout(%v) is negative; 0 sends pushes once", timeout)
	case timeout == 0:
		reply, err = q.send(ctx, args)
		return reply, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var pauses backoff
	var cause error
	for {
		reply, err = q.send(ctx, args)
		isLost := err != nil && !isServerError(err)
		// A server that comes back may be loading, or be a replica, for a while.
		again := isLost || isNotNow(err) || errors.Is(err, ErrOutOfMemory)
		if !again || ctx.Err() != nil {
			if again && cause != nil {
				err = &endedError{ctx.Err(), cause}
			}
			return reply, mayBeThere, err
		}
		mayBeThere = mayBeThere || mayHaveRun(err)
		// An attempt that began just before the end of the time says less than those before it.
		if cause == nil || !isTimeout(err) {
			cause = err
		}
		waitFor(ctx.Done(), pauses.next())
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// newID is the id of a message whose producer gave none, so that its push can be repeated.
func newID() string {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		panic("dq: the system has no random numbers: " + err.Error())
	}
	return hex.EncodeToString(id[:])
}
