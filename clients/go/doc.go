// Package dq is the client of dq, the delay queue module of Redis and Valkey: it pushes messages, and works on them.
//
// The package sends commands through any Redis client, by the interface [Doer]. Packages dq/redigo and dq/goredis
// implement it for redigo and go-redis; an adapter for another client is a few lines.
//
// A producer:
//
//	client := dq.NewClient(do)
//	id, err := client.Queue("mail").PushJSON(ctx, Mail{To: "ann@example.org"}, dq.Delay(15*time.Minute))
//
// A worker:
//
//	mux := dq.NewMux()
//	dq.HandleJSON(mux, "mail", func(ctx context.Context, m *dq.Message, mail Mail) error {
//		return send(ctx, mail)
//	})
//	err := dq.NewWorker(do, mux, dq.Concurrency(8)).Run(dq.SignalContext())
//
// Messages are delivered at least once. A handler that returns nil acknowledges its message; one that returns an error
// has it delivered again after the backoff of the queue, see [ErrReject] and [RetryAfter] for other outcomes.
package dq
