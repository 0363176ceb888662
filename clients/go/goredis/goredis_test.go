package goredis

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"dq"

	"github.com/redis/go-redis/v9"
)

// pipeline sends two commands to an address.
func pipeline(ctx context.Context, address string) error {
	do := New(&redis.Options{Addr: address, DB: 1})
	defer do.Close()
	conn, _ := do.Dial(ctx)
	defer conn.Close()
	_, err := conn.(dq.Pipeliner).Pipeline(ctx, [][]any{{"DQ.ACK", "q", "m"}, {"DQ.ACK", "q", "n"}})
	return err
}

// server listens, and answers each command if there is an answer.
func server(t *testing.T, answer string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for read := make([]byte, 4096); ; {
					n, err := conn.Read(read)
					if err != nil {
						return
					}
					conn.Write(bytes.Repeat([]byte(answer), bytes.Count(read[:n], []byte("*"))))
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func TestCommandsThatWereNotSentHaveNoReplies(t *testing.T) {
	if err := pipeline(context.Background(), "127.0.0.1:1"); !errors.Is(err, syscall.ECONNREFUSED) ||
		!strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Error(err)
	}
	var answered redis.Error // to the SELECT, before the commands
	if err := pipeline(context.Background(), server(t, "-LOADING x\r\n")); !errors.As(err, &answered) {
		t.Error(err)
	}
}

func TestACommandEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	go cancel()
	if err := pipeline(ctx, server(t, "")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestIdleConnectionsAreKeptOnceAndNotForEachQueue(t *testing.T) {
	const idle, queues = 10, 4
	var opened atomic.Int32
	address := server(t, "-ERR unknown command\r\n")
	do := New(&redis.Options{Addr: address, MinIdleConns: idle, DisableIndentity: true,
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			opened.Add(1)
			return net.Dial(network, address)
		}})
	defer do.Close()
	for i := 0; i < queues; i++ {
		conn, err := do.Dial(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.Do(context.Background(), "PING")
	}
	if n := opened.Load(); n > idle+queues {
		t.Error("so many connections were opened:", n)
	}
}
