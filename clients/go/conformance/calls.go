//go:build ignore

// Calls each method of a queue with all its options, for the conformance suite, which looks at what the server gets.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"time"

	"dq"
)

func check[T any](_ T, err error) { checkError(err) }

func checkError(err error) {
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, dq.ErrNotFound) {
		log.Fatal(err)
	}
}

func main() {
	url := flag.String("url", "", "the server")
	flag.Parse()
	do, err := open(*url)
	if err != nil {
		log.Fatal(err)
	}
	q, ctx, soon := dq.NewClient(do).Queue("q"), context.Background(), time.Now().Add(time.Hour)
	common := []dq.EachOption{dq.Priority(1), dq.Retries(1), dq.Lease(time.Second), dq.Group("g"), dq.Header("h", "1")}
	push := []dq.PushOption{dq.TTL(2 * time.Hour), dq.ReplaceLater(), dq.MaxWait(time.Second), dq.Retain(time.Second),
		dq.Batch("b")}
	schedule := []dq.ScheduleOption{dq.TTL(time.Second), dq.At(soon), dq.Until(soon), dq.Times(2)}
	follow := []dq.FollowOption{dq.ID("f"), dq.Delay(time.Second)}
	for _, option := range common {
		push, schedule, follow = append(push, option), append(schedule, option), append(follow, option)
	}
	for _, when := range []dq.PushOption{dq.At(soon), dq.Delay(time.Second)} {
		check(q.Push(ctx, nil, append(push, when, dq.ID("m"))...))
		check(q.PushMany(ctx, [][]byte{nil}, append(push, when, dq.IDs("n"))...))
	}
	past := []dq.PushOption{dq.Attempt(2), dq.LastError("e"), dq.LastCheckpoint([]byte("c")), dq.Dead("retries")}
	check(q.Push(ctx, nil, past...))
	check(q.PushMany(ctx, [][]byte{nil}, past...))
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	check(q.PushAndWait(short, nil))
	check(q.Schedule(ctx, "s", nil, append(schedule, dq.Every(time.Minute), dq.Offset(time.Second))...))
	check(q.Schedule(ctx, "s", nil, dq.Cron("@daily", "UTC")))
	check(q.Follow(ctx, "b", nil, follow...))
	check(q.BatchInfo(ctx, "b"))
	check(q.CancelBatch(ctx, "b"))
	check(q.Cancel(ctx, "m"))
	check(q.Reschedule(ctx, "n", dq.At(soon), dq.Priority(1)))
	check(q.Reschedule(ctx, "n", dq.Delay(time.Second)))
	check(q.Promote(ctx, dq.Count(1), dq.Until(soon)))
	check(q.Redrive(ctx, dq.Count(1), dq.Delay(time.Second), dq.Older(0), dq.Reason("expired")))
	check(q.Redrive(ctx, dq.IDs("m")))
	check(q.Get(ctx, "m"))
	check(q.Peek(ctx, "ready", 1, dq.Group("g")))
	check(q.Len(ctx, "ready", dq.Group("g")))
	check(q.Info(ctx))
	for _, flow := range []dq.Flow{dq.FlowIn, dq.FlowOut, dq.FlowAll} {
		checkError(q.Pause(ctx, flow, time.Second))
		checkError(q.Resume(ctx, flow))
	}
	checkError(q.PauseGroup(ctx, "g", time.Second))
	checkError(q.ResumeGroup(ctx, "g"))
	settings := []dq.Setting{
		dq.Lease(time.Second), dq.MaxLease(time.Minute), dq.Delay(time.Second), dq.Retries(1), dq.TTL(time.Hour),
		dq.Backoff(time.Second, time.Minute, 10), dq.MaxLen(5), dq.MaxInflight(5), dq.Rate(5, time.Second), dq.DeadLen(5),
		dq.DeadTTL(time.Hour), dq.Retain(time.Second), dq.DoneLen(5), dq.MaxPayload(100), dq.GroupInflight(2),
		dq.GroupRate(5, time.Second), dq.KeepErrors(2), dq.GroupOrder("turn"), dq.Dedupe(time.Second),
		dq.Forward("STREAM", "due", "TRIM", "9"), dq.DeadForward("QUEUE", "dead"),
	}
	checkError(q.Declare(ctx, settings...))
	checkError(q.Create(ctx, settings...))
	checkError(q.Alter(ctx, settings...))
	check(q.Purge(ctx, dq.States("ready"), dq.Count(1), dq.Group("g"), dq.Recurring(), dq.Older(0)))
}
