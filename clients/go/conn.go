package dq

import "context"

// Doer sends commands to a server. It is safe for concurrent use, as the clients and pools of all Redis libraries are.
//
// The first argument is the name of the command; arguments are string, []byte, int or int64. A reply is nil, an int64,
// a string or []byte, a []any of replies, or (in RESP3) a map[any]any. An error that the server answered is a
// [ServerError], or has a method RedisError() as those of go-redis have. Any other error means that the connection
// broke.
type Doer interface {
	Do(ctx context.Context, args ...any) (any, error)
}

// DoFunc makes a function a [Doer].
type DoFunc func(ctx context.Context, args ...any) (any, error)

// Do calls f.
func (f DoFunc) Do(ctx context.Context, args ...any) (any, error) { return f(ctx, args...) }

// Conn is a single connection, used by one goroutine at a time. Close may be called at any time and ends a Do.
type Conn interface {
	Doer
	Close() error
}

// Dialer is a [Doer] that opens connections which a worker has for itself.
//
// A worker runs on any Doer. On a Dialer it also ends its waits at once when it stops, and learns at once of messages
// that were taken from it.
type Dialer interface {
	Doer
	// DB returns the number of the database that its connections use.
	DB() int
	// Dial opens a connection.
	Dial(ctx context.Context) (Conn, error)
	// Subscribe opens a connection that listens to a channel, and returns once the server has confirmed that. Both end
	// with ctx.
	Subscribe(ctx context.Context, channel string) (Subscription, error)
}

// KeyDialer is a [Dialer] whose connections lead to the server that holds a key, as in a cluster.
type KeyDialer interface {
	Dialer
	DialKey(ctx context.Context, key string) (Conn, error)
}

// Subscription receives what is published on a channel.
type Subscription interface {
	// Receive waits for the next text. It returns an error once the connection is broken; a connection that is silently
	// dead has to be noticed within 30 seconds, by pings for example.
	Receive() (string, error)
	Close() error
}

// Pipeliner is implemented by a [Conn] that can send several commands in one round trip. Replies stand in the order of
// the commands, and what the server refused is an error among them.
type Pipeliner interface {
	Pipeline(ctx context.Context, commands [][]any) ([]any, error)
}

// pooled is a Doer in the place of a connection.
type pooled struct{ Doer }

func (pooled) Close() error { return nil }

// dial opens a connection to the server that holds a key, if the Doer can do that.
func dial(ctx context.Context, do Doer, key string) (Conn, error) {
	if dialer, ok := do.(KeyDialer); ok {
		return dialer.DialKey(ctx, key)
	}
	if dialer, ok := do.(Dialer); ok {
		return dialer.Dial(ctx)
	}
	return pooled{do}, nil
}

// pipeline sends commands in one round trip if the connection can do that.
func pipeline(ctx context.Context, conn Conn, commands [][]any) ([]any, error) {
	if p, ok := conn.(Pipeliner); ok {
		return p.Pipeline(ctx, commands)
	}
	replies := make([]any, len(commands))
	for i, command := range commands {
		reply, err := conn.Do(ctx, command...)
		if err = translate(err); isServerError(err) {
			reply = err
		} else if err != nil {
			return nil, err
		}
		replies[i] = reply
	}
	return replies, nil
}
