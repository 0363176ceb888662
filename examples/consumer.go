// A consumer with go-redis (go get github.com/redis/go-redis/v9): go run consumer.go [port]
// Replace closeOrder with your own work. To give it something to do: redis-cli DQ.PUSH orders:close "order 1001"
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	queue = "orders:close"
	concurrency = 4          // how many messages are worked on at the same time
	lease = 30 * time.Second // if this process dies, its messages are delivered again after this time
	block = 5 * time.Second
)

// closeOrder does the work. Once ctx is done, another consumer may have the message: it stops and returns an error.
func closeOrder(ctx context.Context, order string) error {
	fmt.Println("closing", order)
	select {
	case <-time.After(time.Second): // stands for work that takes a second
		return nil
	case <-ctx.Done():
		return errors.New("the lease was lost")
	}
}

type consumer struct {
	rdb      *redis.Client
	waiting  *redis.Client
	name     string
	stopping context.Context
}

type message struct {
	id, payload, receipt string
	attempt              int64
}

// withLease runs work while its lease is extended at half time, and cancels its context when the lease is lost.
func (c *consumer) withLease(receipt string, work func(context.Context) error) error {
	ctx, lose := context.WithCancel(context.Background())
	defer lose()
	go func() {
		end, pause := time.Now().Add(lease), lease/2
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			sent := time.Now()
			err := c.rdb.Do(ctx, "DQ.EXTEND", queue, receipt, "LEASE", lease.Milliseconds()).Err()
			switch {
			case err == nil:
				end, pause = sent.Add(lease), lease/2
			case errors.Is(err, redis.Nil) || time.Now().After(end): // the server says so, or cannot be asked
				lose()
				return
			default:
				pause = time.Second
			}
		}
	}()
	return work(ctx)
}

func (c *consumer) handle(m message) error {
	ctx := context.Background()
	if c.stopping.Err() != nil { // it came together with the signal: given back, and this attempt is not counted
		return c.rdb.Do(ctx, "DQ.NACK", queue, m.receipt, "NOCOUNT").Err()
	}
	failure := c.withLease(m.receipt, func(ctx context.Context) error { return closeOrder(ctx, m.payload) })
	if failure != nil {
		state, err := c.rdb.Do(ctx, "DQ.NACK", queue, m.receipt, "ERROR", failure.Error()).Text()
		if errors.Is(err, redis.Nil) {
			state, err = "not ours", nil
		}
		log.Printf("%s failed at attempt %d: %v; now %s", m.id, m.attempt, failure, state)
		return err
	}
	acked, err := c.rdb.Do(ctx, "DQ.ACK", queue, m.receipt).Int()
	if err == nil && acked == 0 {
		log.Printf("%s was done too late: its lease was lost", m.id)
	}
	return err
}

// pop waits for one message. It returns redis.Nil if none came in time.
func (c *consumer) pop() (m message, err error) {
	reply, err := c.waiting.Do(context.Background(),
		"DQ.POP", queue, "LEASE", lease.Milliseconds(), "BLOCK", block.Milliseconds()).Slice()
	if err != nil {
		return m, err
	}
	fields := reply[0].([]interface{})
	return message{fields[0].(string), fields[1].(string), fields[3].(string), fields[2].(int64)}, nil
}

// consume takes one message at a time, so that no lease runs while its message waits in this process.
func (c *consumer) consume() {
	for c.stopping.Err() == nil {
		m, err := c.pop()
		if err == nil {
			err = c.handle(m)
		}
		if err != nil && !errors.Is(err, redis.Nil) { // the next command reconnects
			log.Print(err)
			time.Sleep(time.Second)
		}
	}
}

// unblock ends the waiting of idle goroutines. A message that has been delivered to one of them is not lost by it.
func (c *consumer) unblock() {
	ctx := context.Background()
	clients, err := c.rdb.ClientList(ctx).Result()
	if err != nil {
		log.Print(err)
	}
	own := regexp.MustCompile(`(?m)^id=(\d+) .* name=` + regexp.QuoteMeta(c.name) + ` `)
	for _, client := range own.FindAllStringSubmatch(clients, -1) {
		c.rdb.Do(ctx, "CLIENT", "UNBLOCK", client[1])
	}
}

func main() {
	port := "6379"
	if len(os.Args) > 1 {
		port = os.Args[1]
	}
	stopping, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	host, _ := os.Hostname()
	c := &consumer{stopping: stopping, name: fmt.Sprintf("%s@%s:%d", queue, host, os.Getpid())} // no spaces
	c.rdb = redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	// The read timeout must be longer than BLOCK. No retry: a pop that is sent again may lease a second message.
	c.waiting = redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, ClientName: c.name, PoolSize: concurrency,
		ReadTimeout: block + 5*time.Second, MaxRetries: -1})

	var working sync.WaitGroup
	for i := 0; i < concurrency; i++ {
		working.Add(1)
		go func() { defer working.Done(); c.consume() }()
	}
	<-stopping.Done()
	fmt.Println("stopping")
	finished := make(chan struct{})
	go func() { working.Wait(); close(finished) }() // work that has begun is finished
	for {
		c.unblock() // again and again: a goroutine may have been about to wait
		select {
		case <-finished:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}
