package dq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// Handler works on messages. If it returns nil, its message is completed; otherwise it is delivered again, see
// [ErrReject] and [RetryAfter].
//
// The context ends when the message is taken from the handler; [Cause] returns the reason. What the handler returns
// then no longer counts, and it should return soon. A handler that panics fails its message.
type Handler interface {
	Handle(ctx context.Context, m *Message) error
}

// HandlerFunc makes a function a [Handler].
type HandlerFunc func(ctx context.Context, m *Message) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, m *Message) error { return f(ctx, m) }

// HandlerOption is an option of a queue of a [Mux].
type HandlerOption interface{ forHandler(*settings) }

// QueueOption is an option of one queue, or of all queues of a worker.
type QueueOption interface {
	HandlerOption
	WorkerOption
}

type settings struct {
	concurrency      int
	lease, timeLimit time.Duration
}

// Mux holds the handlers of queues.
type Mux struct {
	queues     []string
	handlers   map[string]Handler
	options    map[string][]HandlerOption
	middleware []func(Handler) Handler
}

// NewMux returns a Mux without handlers.
func NewMux() *Mux {
	return &Mux{handlers: map[string]Handler{}, options: map[string][]HandlerOption{}}
}

// Handle has a handler work on the messages of a queue. Options count before those of the worker: [Concurrency],
// [Lease], [TimeLimit]. It panics if the handler is nil, or if the queue has a handler already.
func (x *Mux) Handle(queue string, handler Handler, options ...HandlerOption) {
	if f, isFunc := handler.(HandlerFunc); handler == nil || isFunc && f == nil {
		panic(fmt.Sprintf("dq: the handler of queue %q is nil", queue))
	}
	if _, taken := x.handlers[queue]; taken {
		panic(fmt.Sprintf("dq: queue %q has two handlers", queue))
	}
	x.queues = append(x.queues, queue)
	x.handlers[queue], x.options[queue] = handler, options
}

// HandleFunc is [Mux.Handle] for a function.
func (x *Mux) HandleFunc(queue string, f func(ctx context.Context, m *Message) error, options ...HandlerOption) {
	x.Handle(queue, HandlerFunc(f), options...)
}

// HandleJSON is [Mux.HandleFunc] for payloads that are the JSON of a T, such as [Queue.PushJSON] makes. A message whose
// payload is not fails, and is delivered again after the backoff, since another worker may be newer.
func HandleJSON[T any](
	x *Mux, queue string, f func(ctx context.Context, m *Message, value T) error, options ...HandlerOption,
) {
	if f == nil {
		panic(fmt.Sprintf("dq: the handler of queue %q is nil", queue))
	}
	x.HandleFunc(queue, func(ctx context.Context, m *Message) error {
		var value T
		if err := json.Unmarshal(m.Payload, &value); err != nil {
			return &payloadError{reflect.TypeOf(&value).Elem(), err}
		}
		return f(ctx, m, value)
	}, options...)
}

// payloadError is that a payload is not JSON of a type. Its text has the place of the trouble, and nothing of the
// payload: what encoding/json says quotes numbers, and an UnmarshalJSON of the type whatever it likes.
type payloadError struct {
	expected reflect.Type
	err      error
}

func (e *payloadError) Error() string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch text := fmt.Sprintf("the payload is not JSON for a %v", e.expected); {
	case errors.As(e.err, &syntax):
		return fmt.Sprintf("%s: it ends, or is no JSON, at byte %d", text, syntax.Offset)
	case errors.As(e.err, &kind) && kind.Field != "":
		return fmt.Sprintf("%s: the field %s is no %v", text, kind.Field, kind.Type)
	default:
		return text
	}
}

func (e *payloadError) Unwrap() error { return e.err }

// Use wraps all handlers, the first middleware outermost.
func (x *Mux) Use(middleware ...func(Handler) Handler) {
	x.middleware = append(x.middleware, middleware...)
}

func (x *Mux) handler(queue string) Handler {
	handler := x.handlers[queue]
	for i := len(x.middleware) - 1; i >= 0; i-- {
		handler = x.middleware[i](handler)
	}
	return handler
}

// setting is an option of a queue of a mux, or of all queues of a worker.
type setting func(*settings)

func (o setting) forHandler(s *settings) { o(s) }
func (o setting) forWorker(w *Worker)    { o(&w.defaults) }

// Concurrency is how many messages of a queue a worker works on at a time. The default is 8.
func Concurrency(n int) QueueOption { return setting(func(s *settings) { s.concurrency = n }) }

// TimeLimit fails a message whose handler takes longer. By default there is no limit.
func TimeLimit(d time.Duration) QueueOption { return setting(func(s *settings) { s.timeLimit = d }) }
