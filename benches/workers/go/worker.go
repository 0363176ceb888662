//go:build ignore

// Measures the Go worker with an empty handler: how many messages a second it works on, and how late delayed messages
// are at their handler. Prints JSON.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"sort"
	"sync"
	"time"

	"dq"
	"dq/redigo"
)

const (
	throughput = "bench:throughput"
	lateness   = "bench:lateness"
	batch      = 1000
)

var (
	url         = flag.String("url", "redis://127.0.0.1:6379", "the server")
	messages    = flag.Int("messages", 300_000, "how many messages are worked on as fast as possible")
	concurrency = flag.Int("concurrency", 64, "how many at a time")
	delayed     = flag.Int("delayed", 1000, "how many delayed messages are measured")
	rate        = flag.Int("rate", 200, "how many of them fall due in a second")
)

func main() {
	flag.Parse()
	do, err := redigo.Open(*url)
	check(err)
	queues := dq.NewClient(do)

	fill(queues.Queue(throughput), *messages, func(int) []dq.PushOption { return nil })
	begun := time.Now()
	work(do, throughput, *messages, func(*dq.Message) {})
	passed := time.Since(begun)

	late := make([]time.Duration, 0, *delayed)
	var mu sync.Mutex
	start := time.Now().Add(2*time.Second + time.Duration(*delayed)*300*time.Microsecond)
	for i := 0; i < *delayed; i++ {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(*rate))
		_, err := queues.Queue(lateness).Push(context.Background(), nil, dq.At(due))
		check(err)
	}
	if time.Now().After(start) {
		log.Fatal("the first message fell due before the last one was pushed: measure fewer messages")
	}
	work(do, lateness, *delayed, func(m *dq.Message) {
		by := time.Since(m.Due)
		mu.Lock()
		late = append(late, by)
		mu.Unlock()
	})
	sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
	at := func(part float64) float64 { return float64(late[int(part*float64(len(late)-1))].Microseconds()) / 1000 }
	fmt.Printf(`{"worker": "dq", "rate": %.0f, "p50": %.3f, "p99": %.3f}`+"\n",
		float64(*messages)/passed.Seconds(), at(0.5), at(0.99))
}

func fill(queue *dq.Queue, n int, options func(int) []dq.PushOption) {
	_, err := queue.Purge(context.Background())
	check(err)
	payloads := make([][]byte, batch)
	for i := 0; i < n; i += batch {
		if n-i < batch {
			payloads = payloads[:n-i]
		}
		_, err := queue.PushMany(context.Background(), payloads, options(i)...)
		check(err)
	}
}

// work works on n messages, and returns when all have been acknowledged.
func work(do dq.Doer, queue string, n int, handle func(*dq.Message)) {
	ctx, stop := context.WithCancel(context.Background())
	var mu sync.Mutex
	mux := dq.NewMux()
	mux.HandleFunc(queue, func(_ context.Context, m *dq.Message) error {
		handle(m)
		mu.Lock()
		defer mu.Unlock()
		if n--; n == 0 {
			stop()
		}
		return nil
	})
	check(dq.NewWorker(do, mux, dq.Concurrency(*concurrency)).Run(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
