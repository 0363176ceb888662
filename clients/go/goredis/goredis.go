// Package goredis connects package dq to go-redis, the Redis client github.com/redis/go-redis.
package goredis

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"dq"
	"dq/internal/adapter"

	"github.com/redis/go-redis/v9"
)

// How long a reply may take if the context of its command has no deadline. It is longer than the pops of a worker.
const replyTimeout = 15 * time.Second

// Client sends commands through a client of go-redis.
type Client struct {
	rdb     *redis.Client
	options redis.Options
	master  *master // of a client of Sentinels
}

var (
	_ dq.Dialer    = (*Client)(nil)
	_ dq.Pipeliner = (*conn)(nil)
)

// New returns a client with the options of go-redis: those of a client that you have are rdb.Options(). It opens
// connections of its own, whose commands end with their contexts and are repeated by dq only. Give a client of
// Sentinels to [Wrap], which learns of a failover at once; with its options alone it is learnt within a second.
func New(options *redis.Options) *Client { return newClient(options, nil) }

func newClient(options *redis.Options, given *redis.Client) *Client {
	c := &Client{options: *options}
	if options.Addr == failoverAddr && options.Dialer != nil {
		c.master = newMaster(options.Dialer, given)
		c.options.Dialer = c.master.dial
	}
	c.options.MaxRetries = -1
	c.options.ReadTimeout, c.options.WriteTimeout = replyTimeout, replyTimeout
	c.options.ContextTimeoutEnabled = true
	c.rdb = c.open()
	return c
}

func (c *Client) open() *redis.Client {
	options := c.options // NewClient changes them.
	dial, onConnect := options.Dialer, options.OnConnect
	if dial == nil {
		dial = redis.NewDialer(&options)
	}
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		if opening, ok := ctx.Value(openingKey{}).(*opening); ok {
			opening.begun.Store(true)
		}
		return dial(ctx, network, address)
	}
	options.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		if opening, ok := ctx.Value(openingKey{}).(*opening); ok {
			opening.done.Store(true)
		}
		if onConnect != nil {
			return onConnect(ctx, cn)
		}
		return nil
	}
	return redis.NewClient(&options)
}

// opening is whether a command has begun to open a connection, and whether the server has accepted that. Between the
// two, nothing that is said is an answer to the command.
type opening struct{ begun, done atomic.Bool }

type openingKey struct{}

// DB returns the number of the database.
func (c *Client) DB() int { return c.options.DB }

// Close closes the connections that commands were sent on.
func (c *Client) Close() error {
	if c.master != nil {
		c.master.close()
	}
	return c.rdb.Close()
}

// Do sends a command on a connection of the pool.
func (c *Client) Do(ctx context.Context, args ...any) (any, error) {
	var o opening
	ctx = context.WithValue(ctx, openingKey{}, &o)
	reply, err := c.within(ctx, func() (any, error) { return result(c.rdb.Do(ctx, args...)) }, func() {})
	if err != nil && o.begun.Load() && !o.done.Load() {
		return nil, dq.NotSent(err)
	}
	return reply, err
}

func (c *Client) within(ctx context.Context, run func() (any, error), breakOff func()) (any, error) {
	reply, err := adapter.Within(ctx, run, breakOff)
	return reply, c.named(err)
}

// named returns what the server answered as it is, and any other error with the address of the server.
func (c *Client) named(err error) error {
	if isAnswer(err) {
		return err
	}
	return adapter.At(c.rdb.Options().Addr, err)
}

// isAnswer returns whether the server has answered with this error, or with null.
func isAnswer(err error) bool {
	var answered redis.Error
	return errors.As(err, &answered)
}

// result returns the reply to a command.
func result(command *redis.Cmd) (any, error) {
	reply, err := command.Result()
	if err == redis.Nil {
		return nil, nil
	}
	return reply, err
}

// Dial opens a connection outside the pool, with its first command.
func (c *Client) Dial(context.Context) (dq.Conn, error) {
	made := &conn{client: c}
	options := c.options
	options.PoolSize, options.MinIdleConns = 1, 0 // Every queue of a worker has some of these connections.
	onConnect := options.OnConnect
	options.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		made.opened.Store(true)
		if onConnect != nil {
			return onConnect(ctx, cn)
		}
		return nil
	}
	made.rdb = redis.NewClient(&options)
	made.conn = made.rdb.Conn()
	return made, nil
}

// conn is a connection, and the client that has no other. To close that one ends what the connection waits for.
type conn struct {
	rdb    *redis.Client
	conn   *redis.Conn
	client *Client
	opened atomic.Bool // whether the server has accepted it
}

// within returns what was said while the connection was opened as an error of the connection: it is no answer to a
// command.
func (c *conn) within(ctx context.Context, run func() (any, error)) (any, error) {
	reply, err := c.client.within(ctx, run, func() { c.Close() })
	if err != nil && !c.opened.Load() {
		return nil, dq.NotSent(err)
	}
	return reply, err
}

// Close ends the connection.
func (c *conn) Close() error { return c.rdb.Close() }

// Do sends a command. If ctx ends before the reply, the connection is closed.
func (c *conn) Do(ctx context.Context, args ...any) (any, error) {
	return c.within(ctx, func() (any, error) {
		command := redis.NewCmd(ctx, args...)
		_ = c.conn.Process(ctx, command)
		return result(command)
	})
}

// Pipeline sends commands in one round trip.
func (c *conn) Pipeline(ctx context.Context, commands [][]any) ([]any, error) {
	reply, err := c.within(ctx, func() (any, error) {
		pipeline := c.conn.Pipeline()
		sent := make([]*redis.Cmd, len(commands))
		for i, command := range commands {
			sent[i] = pipeline.Do(ctx, command...)
		}
		_, err := pipeline.Exec(ctx)
		if err != nil && !isAnswer(err) {
			return nil, err
		}
		if err != nil && !c.opened.Load() {
			return nil, err
		}
		replies := make([]any, len(commands))
		for i, command := range sent {
			reply, refused := result(command)
			if refused != nil {
				reply = dq.ServerError(refused.Error())
			}
			replies[i] = reply
		}
		return replies, nil
	})
	replies, _ := reply.([]any)
	return replies, err
}

type subscription struct {
	*redis.PubSub
	stop context.CancelFunc
}

// Subscribe opens a connection that listens to a channel.
func (c *Client) Subscribe(ctx context.Context, channel string) (dq.Subscription, error) {
	opened := c.rdb.Subscribe(ctx)
	err := opened.Subscribe(ctx, channel)
	if err == nil {
		_, err = opened.ReceiveTimeout(ctx, replyTimeout)
	}
	if err != nil {
		opened.Close()
		return nil, c.named(err)
	}
	ping := func() error { return opened.Ping(ctx) }
	return &subscription{opened, adapter.Watch(ctx, ping, opened.Close)}, nil
}

// Receive waits for the next text.
func (s *subscription) Receive() (string, error) {
	for {
		heard, err := s.ReceiveTimeout(context.Background(), adapter.Silence)
		if err != nil && !isAnswer(err) { // A user without the right to PING gets an answer, too.
			return "", err
		}
		if message, ok := heard.(*redis.Message); ok {
			return message.Payload, nil
		}
	}
}

// Close ends the connection.
func (s *subscription) Close() error {
	s.stop()
	return nil
}
