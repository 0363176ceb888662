package dq_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"dq"
)

// resp3 is a Redis client of its own that speaks RESP3, in which maps are maps. Each command has a connection.
type resp3 struct{ address string }

type resp3Conn struct {
	net.Conn
	replies *bufio.Reader
}

func (resp3) DB() int { return 0 }

func (c resp3) Dial(ctx context.Context) (dq.Conn, error) {
	opened, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.address)
	if err != nil {
		return nil, err
	}
	conn := &resp3Conn{opened, bufio.NewReader(opened)}
	_, err = conn.Do(ctx, "HELLO", 3)
	return conn, err
}

func (c resp3) Do(ctx context.Context, args ...any) (any, error) {
	conn, err := c.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Do(ctx, args...)
}

func (c resp3) Subscribe(ctx context.Context, channel string) (dq.Subscription, error) {
	conn, err := c.Dial(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.Do(ctx, "SUBSCRIBE", channel)
	go func() { <-ctx.Done(); conn.Close() }()
	return conn.(*resp3Conn), err
}

func (c *resp3Conn) Do(ctx context.Context, args ...any) (any, error) {
	end, _ := ctx.Deadline()
	c.SetDeadline(end)
	words := bufio.NewWriter(c)
	fmt.Fprintf(words, "*%d\r\n", len(args))
	for _, arg := range args {
		word := fmt.Sprint(arg)
		if bytes, ok := arg.([]byte); ok {
			word = string(bytes)
		}
		fmt.Fprintf(words, "$%d\r\n%s\r\n", len(word), word)
	}
	if err := words.Flush(); err != nil {
		return nil, err
	}
	reply, err := c.read()
	if refused, ok := reply.(dq.ServerError); ok {
		return nil, refused
	}
	return reply, err
}

func (c *resp3Conn) Receive() (string, error) {
	c.SetDeadline(time.Time{})
	reply, err := c.read()
	if words, ok := reply.([]any); ok && len(words) == 3 {
		return words[2].(string), err
	}
	return "", err
}

func (c *resp3Conn) read() (any, error) {
	line, err := c.replies.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], line[1:len(line)-2]
	n, _ := strconv.ParseInt(rest, 10, 64)
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return dq.ServerError(rest), nil
	case ':':
		return n, nil
	case '_':
		return nil, nil
	case '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(c.replies, text)
		return string(text[:n]), err
	case '*', '>':
		items := make([]any, n)
		for i := range items {
			if items[i], err = c.read(); err != nil {
				return nil, err
			}
		}
		return items, nil
	case '%':
		fields := make(map[any]any)
		for ; n > 0; n-- {
			name, _ := c.read()
			if fields[name], err = c.read(); err != nil {
				return nil, err
			}
		}
		return fields, nil
	}
	return nil, fmt.Errorf("what is %q", line)
}

func TestAnotherClientAndRESP3Work(t *testing.T) {
	s := newServer(t)
	do := resp3{fmt.Sprintf("127.0.0.1:%d", s.port)}
	q := dq.NewClient(do).Queue("q")
	causes := make(chan error, 1)
	mux := dq.NewMux()
	mux.HandleFunc("q", func(ctx context.Context, m *dq.Message) error {
		if m.Headers["a"] != "b" || m.Created.IsZero() {
			t.Errorf("%+v", m)
		}
		if string(m.Payload) == "quick" {
			m.SetResult([]byte("done"))
			return nil
		}
		<-ctx.Done()
		causes <- dq.Cause(ctx)
		return nil
	})
	s.work(do, mux, dq.Lease(2*time.Second))
	if result := must(q.PushAndWait(background, []byte("quick"), dq.Header("a", "b"))); string(result) != "done" {
		t.Error(string(result))
	}
	id := must(q.Push(background, []byte("slow"), dq.Header("a", "b")))
	eventually(t, "the lease is extended", func() bool { return must(s.queue("q").Info(background)).Inflight == 1 })
	deadline := must(q.Get(background, id)).Deadline
	eventually(t, "the lease is extended", func() bool { return must(q.Get(background, id)).Deadline.After(deadline) })
	must(q.Cancel(background, id))
	var lost *dq.LostError
	if err := <-causes; !errors.As(err, &lost) || lost.Reason != "cancelled" {
		t.Error(err)
	}
}
