// Package dq is the client of dq, the delay queue module of Redis and Valkey: it pushes messages, and works on them.
//
// The package sends commands through any Redis client, by the interface [Doer]. Package dq/redigo implements it for
// redigo; an adapter for another client is a few lines.
//
// A producer:
//
//	client := dq.NewClient(do)
//	id, err := client.Queue("mail").Push(ctx, []byte("ann@example.org"), dq.Delay(15*time.Minute))
//
// A worker:
//
//	mux := dq.NewMux()
//	mux.HandleFunc("mail", func(ctx context.Context, m *dq.Message) error {
//		return send(ctx, m.Payload)
//	})
//	err := dq.NewWorker(do, mux, dq.Concurrency(8)).Run(dq.SignalContext())
//
// Messages are delivered at least once. A handler that returns nil acknowledges its message; one that returns an error
// has it delivered again after the backoff of the queue, see [ErrReject] and [RetryAfter] for other outcomes.
package dq
