// Package redigo connects package dq to redigo, the Redis client github.com/gomodule/redigo.
package redigo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dq"
	"dq/internal/adapter"

	"github.com/gomodule/redigo/redis"
)

const (
	connectTimeout = 5 * time.Second
	replyTimeout   = 10 * time.Second
	maxIdle        = 8
	idleTime       = 4 * time.Minute
)

// Client sends commands through a pool of redigo.
type Client struct {
	pool     *redis.Pool
	database int
	address  string // for errors, if it is known
}

var (
	_ dq.Dialer    = (*Client)(nil)
	_ dq.Pipeliner = (*conn)(nil)
)

// Open returns a client for a URL: redis://user:password@host:port/database, rediss:// for TLS, or unix:///path?db=0.
// It does not connect yet. The options come from redigo.
func Open(address string, options ...redis.DialOption) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("dq: the URL of the server cannot be read: %w", err)
	}
	if found := unknown(u); found != "" {
		return nil, fmt.Errorf("dq: the URL of the server has %s; it must be redis://user:password@host:port/database, "+
			"rediss:// or unix:///path?db=0", found)
	}
	where, number := u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Scheme == "unix" {
		where, number = u.Path, u.Query().Get("db")
	}
	database := 0
	if number != "" {
		wide, err := strconv.ParseUint(number, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("dq: the database %q in the URL of the server is not a number", number)
		}
		database = int(wide)
	}
	options = append([]redis.DialOption{
		redis.DialReadTimeout(replyTimeout), redis.DialWriteTimeout(replyTimeout),
	}, options...)
	var open func(options []redis.DialOption) (redis.Conn, error)
	switch u.Scheme {
	case "redis", "rediss":
		open = func(options []redis.DialOption) (redis.Conn, error) { return redis.DialURL(address, options...) }
	case "unix":
		password, _ := u.User.Password()
		options = append(options, redis.DialDatabase(database),
			redis.DialUsername(u.User.Username()), redis.DialPassword(password))
		open = func(options []redis.DialOption) (redis.Conn, error) { return redis.Dial("unix", u.Path, options...) }
	default:
		return nil, fmt.Errorf("dq: the URL of the server begins with %q; it must be redis, rediss or unix", u.Scheme)
	}
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: time.Minute}
	pool := &redis.Pool{
		MaxIdle:     maxIdle,
		IdleTimeout: idleTime,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			var socket net.Conn
			within := redis.DialContextFunc(func(_ context.Context, network, address string) (net.Conn, error) {
				opened, err := dialer.DialContext(ctx, network, address)
				socket = opened
				return opened, err
			})
			opened, err := open(append([]redis.DialOption{within}, options...))
			if err != nil {
				return nil, err
			}
			return accepted(opened, socket)
		},
		TestOnBorrow: func(c redis.Conn, _ time.Time) error {
			if watched, ok := c.(*watched); ok && isClosed(watched.socket) {
				return errors.New("the server has closed the connection")
			}
			return nil
		},
	}
	return &Client{pool, database, where}, nil
}

// unknown returns the part of a URL that would be ignored, if there is one.
func unknown(u *url.URL) string {
	for name, values := range u.Query() {
		isProtocol := name == "protocol" && values[0] == "2" // Redigo speaks no other.
		if !isProtocol && (name != "db" || u.Scheme != "unix") {
			return fmt.Sprintf("the parameter %q", name)
		}
	}
	_, hasPassword := u.User.Password()
	switch {
	case u.Fragment != "":
		return fmt.Sprintf("the fragment %q", u.Fragment)
	case u.Scheme == "unix" && u.Host != "":
		return fmt.Sprintf("the host %q", u.Host)
	case u.User.Username() != "" && !hasPassword:
		return "a user without a password"
	}
	return ""
}

// New returns a client that uses a pool. It dials connections of its own for what blocks, by the Dial or DialContext of
// the pool. The number is that of the database which these select.
func New(pool *redis.Pool, database int) *Client {
	return &Client{pool: pool, database: database}
}

// DB returns the number of the database.
func (c *Client) DB() int { return c.database }

// Close closes the pool.
func (c *Client) Close() error { return c.pool.Close() }

// Do sends a command on a connection of the pool. If the pool does not test its connections, some may have been closed
// while they were idle: what only reads is then sent again.
func (c *Client) Do(ctx context.Context, args ...any) (any, error) {
	reply, err := c.doOnce(ctx, args)
	for idle := c.pool.IdleCount(); err != nil && idle >= 0 && c.pool.TestOnBorrow == nil; idle-- {
		if ctx.Err() != nil || !isClosedByServer(err) || !isHarmless(args[0]) {
			break
		}
		reply, err = c.doOnce(ctx, args)
	}
	return reply, err
}

func (c *Client) doOnce(ctx context.Context, args []any) (any, error) {
	pooled, err := within(ctx, func() (redis.Conn, error) { return c.pool.GetContext(ctx) })
	if err != nil {
		return nil, dq.NotSent(c.translate(err))
	}
	reply, err := adapter.Within(ctx, func() (any, error) {
		defer pooled.Close()
		return do(ctx, pooled, args)
	}, func() {})
	return reply, c.translate(err)
}

// Dial opens a connection outside the pool.
func (c *Client) Dial(ctx context.Context) (dq.Conn, error) {
	opened, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{opened, c}, nil
}

func (c *Client) dial(ctx context.Context) (redis.Conn, error) {
	opened, err := within(ctx, func() (redis.Conn, error) {
		switch {
		case c.pool.DialContext != nil:
			return c.pool.DialContext(ctx)
		case c.pool.Dial != nil:
			return c.pool.Dial()
		}
		return nil, errors.New("dq: the pool of redigo has no Dial")
	})
	return opened, c.translate(err)
}

// within opens or borrows a connection, but not beyond the end of ctx, although a server that accepts connections may
// say nothing on them. One that comes later is closed.
func within(ctx context.Context, open func() (redis.Conn, error)) (redis.Conn, error) {
	type opening struct {
		conn redis.Conn
		err  error
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	openings := make(chan opening)
	go func() {
		conn, err := open()
		select {
		case openings <- opening{conn, err}:
		case <-ctx.Done():
			if err == nil {
				conn.Close()
			}
		}
	}()
	select {
	case o := <-openings:
		return o.conn, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type conn struct {
	redis.Conn
	client *Client
}

// Do sends a command. If ctx ends before the reply, the connection is closed.
func (c *conn) Do(ctx context.Context, args ...any) (any, error) {
	reply, err := adapter.Within(ctx, func() (any, error) { return do(ctx, c.Conn, args) }, func() { c.Close() })
	return reply, c.client.translate(err)
}

// Pipeline sends commands in one round trip.
func (c *conn) Pipeline(ctx context.Context, commands [][]any) ([]any, error) {
	reply, err := adapter.Within(ctx, func() (any, error) {
		for _, command := range commands {
			if err := c.Send(command[0].(string), command[1:]...); err != nil {
				return nil, err
			}
		}
		if err := c.Flush(); err != nil {
			return nil, err
		}
		replies := make([]any, len(commands))
		for i := range replies {
			reply, err := redis.ReceiveWithTimeout(c.Conn, timeout(ctx))
			if refused, ok := err.(redis.Error); ok {
				reply = dq.ServerError(refused)
			} else if err != nil {
				return nil, err
			}
			replies[i] = reply
		}
		return replies, nil
	}, func() { c.Close() })
	replies, _ := reply.([]any)
	return replies, c.client.translate(err)
}

func do(ctx context.Context, c redis.Conn, args []any) (any, error) {
	name, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("dq: the name of a command must be a string, and is a %T", args[0])
	}
	return redis.DoWithTimeout(c, timeout(ctx), name, args[1:]...)
}

// timeout returns how long a reply may take.
func timeout(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return replyTimeout
	}
	if left := time.Until(end); left > 0 {
		return left
	}
	return time.Nanosecond
}

// translate returns what the server answered as dq knows it, and any other error with the address of the server.
func (c *Client) translate(err error) error {
	var refused redis.Error
	if errors.As(err, &refused) {
		return dq.ServerError(refused)
	}
	return adapter.At(c.address, err)
}

type subscription struct {
	conn redis.Conn
	stop context.CancelFunc
}

// Subscribe opens a connection that listens to a channel.
func (c *Client) Subscribe(ctx context.Context, channel string) (dq.Subscription, error) {
	opened, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	send := func(words ...any) error {
		if err := opened.Send(words[0].(string), words[1:]...); err != nil {
			return err
		}
		return opened.Flush()
	}
	if err = send("SUBSCRIBE", channel); err == nil {
		_, err = redis.ReceiveWithTimeout(opened, replyTimeout)
	}
	if err != nil {
		opened.Close()
		return nil, c.translate(err)
	}
	return &subscription{opened, adapter.Watch(ctx, func() error { return send("PING", "") }, opened.Close)}, nil
}

// Receive waits for the next text.
func (s *subscription) Receive() (string, error) {
	for {
		reply, err := redis.ReceiveWithTimeout(s.conn, adapter.Silence)
		var refused redis.Error
		if err != nil && !errors.As(err, &refused) { // A user without the right to PING gets an answer, too.
			return "", err
		}
		if words, _ := redis.ByteSlices(reply, nil); len(words) == 3 && string(words[0]) == "message" {
			return string(words[2]), nil
		}
	}
}

// Close ends the connection.
func (s *subscription) Close() error {
	s.stop()
	return nil
}
