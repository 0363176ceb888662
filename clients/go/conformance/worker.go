//go:build ignore

// The worker that the conformance suite drives: what each message asks for is in its payload.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"dq"
	"dq/conformance/internal/escaped"
)

type fields map[string]any

var output sync.Mutex

// say writes a line.
func say(event string, said fields) {
	said["event"] = event
	line := escaped.Marshal(said)
	output.Lock()
	defer output.Unlock()
	os.Stdout.Write(append(line, '\n'))
}

func now() int64 { return time.Now().UnixMilli() }

var ends = map[dq.EventKind]string{dq.Done: "ok", dq.Failed: "fail", dq.Rejected: "reject", dq.Retried: "retry"}

// hear writes what the worker decides by itself, and how handlers end. Then it may do what a hook should not.
func hear(e dq.Event) {
	var lost *dq.LostError
	switch {
	case e.Kind == dq.Ready:
		say("ready", fields{})
	case errors.As(e.Err, &lost):
		say("lost", fields{"id": e.ID, "reason": lost.Reason, "at": now()})
	case ends[e.Kind] != "":
		say("end", fields{"id": e.ID, "how": ends[e.Kind], "at": now()})
	}
	switch hook := os.Getenv("DQ_HOOK"); {
	case hook == "fail":
		panic("the hook fails")
	case hook == "block" && e.Kind == dq.Failed:
		time.Sleep(3 * time.Second)
	}
}

// handle does what the payload says.
func handle(ctx context.Context, m *dq.Message, wanted wish) error {
	say("start", fields{"queue": m.Queue, "id": m.ID, "attempt": m.Attempt, "headers": m.Headers,
		"checkpoint": string(m.Checkpoint), "at": now()})
	err := work(ctx, m, wanted)
	if errors.Is(dq.Cause(ctx), dq.ErrLost) {
		say("end", fields{"id": m.ID, "how": "lost", "at": now()})
	}
	return err
}

type wish struct {
	Do, Text string
	MS       float64
	Times    *int
	After    any
	Result   json.RawMessage
}

// UnmarshalJSON keeps bytes that are not UTF-8.
func (w *wish) UnmarshalJSON(data []byte) error {
	type plain wish
	return escaped.Unmarshal(data, (*plain)(w))
}

func work(ctx context.Context, m *dq.Message, wanted wish) error {
	text, wait := escaped.Bytes(wanted.Text), milliseconds(wanted.MS)
	if wanted.Do == "save" {
		time.Sleep(wait)
		if err := m.Save(ctx, []byte(text)); err != nil {
			return err
		}
		time.Sleep(wait)
		wanted.Do = "fail"
	}
	switch wanted.Do {
	case "ok":
	case "fail":
		if wanted.Times == nil || m.Attempt <= *wanted.Times {
			return errors.New(text)
		}
	case "reject":
		return fmt.Errorf("%s: %w", text, dq.ErrReject)
	case "retry":
		after, isNumber := wanted.After.(float64)
		if !isNumber {
			after = 0
		}
		return dq.RetryAfter(milliseconds(after), errors.New(text))
	case "result":
		return result(m, wanted.Result)
	case "hang":
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return dq.Cause(ctx)
		}
	case "spin":
		for end := time.Now().Add(wait); time.Now().Before(end); {
		}
	case "exit":
		os.Exit(3)
	default:
		return fmt.Errorf("unknown task %q", wanted.Do)
	}
	return nil
}

// result keeps a string as it is, anything else as JSON.
func result(m *dq.Message, value json.RawMessage) error {
	var text string
	if len(value) == 0 || bytes.Equal(value, []byte("null")) {
		return nil
	}
	if escaped.Unmarshal(value, &text) == nil {
		value = []byte(escaped.Bytes(text))
	}
	m.SetResult(value)
	return nil
}

// milliseconds returns the nearest time that a duration can hold.
func milliseconds(n float64) time.Duration {
	return time.Duration(math.Max(math.MinInt64, math.Min(math.MaxInt64-1023, n*float64(time.Millisecond))))
}

// queues reads NAME=CONCURRENCY, or NAME.
type queues map[string][]dq.HandlerOption

func (q queues) String() string { return "" }

func (q queues) Set(word string) error {
	at := strings.LastIndexByte(word, '=')
	if at < 0 {
		q[word] = nil
		return nil
	}
	n, err := strconv.Atoi(word[at+1:])
	q[word[:at]] = []dq.HandlerOption{dq.Concurrency(n)}
	return err
}

func main() {
	named := queues{}
	url := flag.String("url", "", "the server")
	flag.Var(named, "queue", "NAME or NAME=CONCURRENCY, once or more")
	lease := flag.Int("lease", 0, "in ms")
	grace := flag.Int("grace", 30_000, "in ms")
	name := flag.String("name", "worker", "the end of the name of the consumer")
	limit := flag.Int("time-limit", 0, "in ms")
	flag.Parse()
	log.SetFlags(log.Lmicroseconds)

	do, err := open(*url)
	if err != nil {
		log.Fatal(err)
	}
	mux := dq.NewMux()
	for queue, options := range named {
		dq.HandleJSON(mux, queue, handle, options...)
	}
	err = dq.NewWorker(do, mux, dq.Name(*name), dq.OnEvent(hear), dq.Lease(milliseconds(float64(*lease))),
		dq.Grace(milliseconds(float64(*grace))), dq.TimeLimit(milliseconds(float64(*limit)))).Run(dq.SignalContext())
	if err != nil {
		log.Fatal(err)
	}
	say("stopped", fields{})
}
