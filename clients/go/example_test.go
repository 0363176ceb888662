package dq_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"dq"
	"dq/redigo"
)

func ExampleNewWorker() {
	do, err := redigo.Open("redis://localhost:6379")
	if err != nil {
		log.Fatal(err)
	}
	mux := dq.NewMux()
	mux.HandleFunc("mail", func(ctx context.Context, m *dq.Message) error {
		fmt.Printf("mail to %s\n", m.Payload)
		return nil
	}, dq.Concurrency(2), dq.TimeLimit(time.Minute))
	worker := dq.NewWorker(do, mux)
	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !worker.IsHealthy() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	if err := worker.Run(dq.SignalContext()); err != nil {
		log.Fatal(err)
	}
}

func ExampleQueue_Push() {
	do, err := redigo.Open("redis://localhost:6379")
	if err != nil {
		log.Fatal(err)
	}
	queue := dq.NewClient(do).Queue("mail")
	id, err := queue.Push(context.Background(), []byte("ann@example.org"), dq.ID("order-1"), dq.Delay(15*time.Minute))
	switch {
	case errors.Is(err, dq.ErrDuplicate):
		fmt.Println(id, "is there already")
	case errors.Is(err, dq.ErrQueueFull):
		fmt.Println("try again later")
	case err != nil:
		log.Fatal(err)
	}
}

func ExampleRetryAfter() {
	mux := dq.NewMux()
	mux.HandleFunc("mail", func(ctx context.Context, m *dq.Message) error {
		if len(m.Payload) == 0 {
			return fmt.Errorf("no address: %w", dq.ErrReject)
		}
		if m.Attempt < 3 {
			return dq.RetryAfter(10*time.Minute, errors.New("the mail server is busy"))
		}
		return nil
	})
}

func ExampleCause() {
	handle := func(ctx context.Context, m *dq.Message) error {
		select {
		case <-time.After(time.Second): // stands for work that takes a second
			return nil
		case <-ctx.Done():
			log.Print(dq.Cause(ctx)) // such as "dq: the message is lost: cancelled"
			return ctx.Err()
		}
	}
	dq.NewMux().HandleFunc("mail", handle)
}
