package dq

import (
	"context"
	"time"
)

// Client pushes messages and looks at queues.
type Client struct {
	do          Doer
	prefix      string
	pushTimeout time.Duration
	tracer      Tracer
	onPush      []func(ctx context.Context, queue string, headers map[string]string)
}

// ClientOption is an option of [NewClient].
type ClientOption interface{ forClient(*Client) }

// SharedOption is an option of both a client and a worker.
type SharedOption interface {
	ClientOption
	WorkerOption
}

type clientOption func(*Client)

func (o clientOption) forClient(c *Client) { o(c) }

type sharedOption struct {
	clientOption
	workerOption
}

// PushTimeout is how long a push may take. While its connection breaks it is repeated, under the same id, so that the
// message is made once. 0 switches that off: the server then makes the ids. The default is 10 seconds.
func PushTimeout(d time.Duration) ClientOption {
	return clientOption(func(c *Client) { c.pushTimeout = d })
}

// OnPush calls a function before each push and schedule. It may change the headers.
func OnPush(f func(ctx context.Context, queue string, headers map[string]string)) ClientOption {
	return clientOption(func(c *Client) { c.onPush = append(c.onPush, f) })
}

// Prefix begins the keys of all queues, of a client or of a worker.
func Prefix(prefix string) SharedOption {
	return sharedOption{func(c *Client) { c.prefix = prefix }, func(w *Worker) { w.prefix = prefix }}
}

// NewClient returns a client that sends its commands through do.
func NewClient(do Doer, options ...ClientOption) *Client {
	c := &Client{do: do, pushTimeout: pushTimeout}
	for _, option := range options {
		option.forClient(c)
	}
	return c
}

// Queue returns a queue by its name. The first push creates it on the server.
func (c *Client) Queue(name string) *Queue {
	return &Queue{client: c, name: name, key: c.prefix + name}
}
