package dq_test

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dq"
	"dq/redigo"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// state waits until a message is in a state.
func (s *server) state(queue, id, state string) *dq.Record {
	s.t.Helper()
	var found *dq.Record
	eventually(s.t, id+" is "+state, func() bool {
		m, err := s.queue(queue).Get(background, id)
		found = m
		return err == nil && m.State == state
	})
	return found
}

func TestAPanicFailsTheMessageWithItsStack(t *testing.T) {
	s := newServer(t)
	mux := dq.NewMux()
	mux.HandleFunc("q", func(context.Context, *dq.Message) error { panic("no such house") })
	mux.HandleFunc("gone", func(context.Context, *dq.Message) error { runtime.Goexit(); return nil })
	logged := make(lines, 100)
	s.work(s.do, mux, dq.ErrorLog(log.New(logged, "", 0)))
	must(s.queue("q").Push(background, nil, dq.ID("m"), dq.Retries(0)))
	must(s.queue("gone").Push(background, nil, dq.ID("m"), dq.Retries(0)))
	text := s.state("q", "m", "dead").Error
	if !strings.HasPrefix(text, "panic: no such house\ndq_test.TestAPanic") || !strings.Contains(text, "worker_test.go:") {
		t.Error(text)
	}
	s.state("gone", "m", "dead")
	line := <-logged
	for !strings.Contains(line, "no such house") {
		line = <-logged
	}
	if !strings.Contains(line, "worker_test.go:") {
		t.Error("the log has the place, too:", line)
	}
}

// lines is a log that a test reads.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func TestAnErrorIsKeptWithItsType(t *testing.T) {
	s := newServer(t)
	mux := dq.NewMux()
	mux.HandleFunc("q", func(context.Context, *dq.Message) error {
		return &os.PathError{Op: "open", Path: "x", Err: io.EOF}
	})
	s.work(s.do, mux)
	must(s.queue("q").Push(background, nil, dq.ID("m"), dq.Retries(0)))
	if text := s.state("q", "m", "dead").Error; text != "*fs.PathError: open x: EOF" {
		t.Error(text)
	}
}

func TestAMessageHasWhatItsProducerSaid(t *testing.T) {
	s := newServer(t)
	heard := make(chan *dq.Message, 1)
	mux := dq.NewMux()
	mux.HandleFunc("q", func(_ context.Context, m *dq.Message) error { heard <- m; return nil })
	s.work(s.do, mux, dq.Prefix("app:"))
	must(s.queue("app:q").Push(background, []byte("x"), dq.ID("m"), dq.Priority(3), dq.Group("g"), dq.Header("a", "\xff")))
	m := <-heard
	if m.Queue != "q" || m.ID != "m" || string(m.Payload) != "x" || m.Attempt != 1 || m.Priority != 3 || m.Group != "g" ||
		m.Headers["a"] != "\xff" || time.Since(m.Created) > time.Minute || m.Due.Before(m.Created) {
		t.Errorf("%+v", m)
	}
}

func TestAValueReachesItsHandlerAsJSON(t *testing.T) {
	type order struct{ Item string }
	s := newServer(t)
	heard := make(chan order, 1)
	mux := dq.NewMux()
	dq.HandleJSON(mux, "q", func(_ context.Context, _ *dq.Message, o order) error { heard <- o; return nil })
	s.work(s.do, mux)
	must(s.queue("q").PushJSON(background, order{"bread"}, dq.Priority(3)))
	if o := <-heard; o.Item != "bread" {
		t.Error(o)
	}
	must(s.queue("q").Push(background, []byte("bread"), dq.ID("m")))
	if text := s.state("q", "m", "delayed").Error; !strings.Contains(text, "not JSON for a dq_test.order") {
		t.Error(text)
	}
	if _, err := s.queue("q").PushJSON(background, heard); err == nil || !strings.Contains(err.Error(), "chan") {
		t.Error(err)
	}
}

func TestACheckpointReachesTheNextAttempt(t *testing.T) {
	s := newServer(t)
	found := make(chan string, 2)
	mux := dq.NewMux()
	mux.HandleFunc("q", func(ctx context.Context, m *dq.Message) error {
		if found <- string(m.Checkpoint); m.Attempt > 1 {
			s.ask("DQ.CANCEL", "q", m.ID)
			if err := m.Save(ctx, nil); !errors.Is(err, dq.ErrLost) {
				t.Error(err)
			}
			return nil
		}
		if err := m.Save(ctx, []byte("page 7")); err != nil {
			t.Error(err)
		}
		return dq.RetryAfter(0, errors.New("later"))
	})
	s.work(s.do, mux)
	must(s.queue("q").Push(background, nil))
	if first, second := <-found, <-found; first != "" || second != "page 7" {
		t.Error(first, second)
	}
}

func TestMiddlewareSeesBothSides(t *testing.T) {
	s := newServer(t)
	order := make(chan string, 3)
	wrap := func(name string) func(dq.Handler) dq.Handler {
		return func(next dq.Handler) dq.Handler {
			return dq.HandlerFunc(func(ctx context.Context, m *dq.Message) error {
				order <- name + m.Headers["tenant"]
				return next.Handle(ctx, m)
			})
		}
	}
	mux := dq.NewMux()
	mux.Use(wrap("outer "), wrap("inner "))
	mux.HandleFunc("q", func(context.Context, *dq.Message) error { order <- "handler"; return nil })
	s.work(s.do, mux)
	must(s.queue("q", dq.OnPush(func(_ context.Context, queue string, headers map[string]string) {
		headers["tenant"] = "ann of " + queue
	})).Push(background, nil))
	for _, wanted := range []string{"outer ann of q", "inner ann of q", "handler"} {
		if said := <-order; said != wanted {
			t.Error(said, "instead of", wanted)
		}
	}
}

type traces struct{ spans chan string }

type traceKey struct{}

func (traces) Inject(ctx context.Context, headers map[string]string) {
	headers["traceparent"], _ = ctx.Value(traceKey{}).(string)
}

func (x traces) Start(ctx context.Context, m *dq.Message) (context.Context, func(error)) {
	return context.WithValue(ctx, traceKey{}, m.Headers["traceparent"]), func(err error) {
		x.spans <- m.Headers["traceparent"] + " " + err.Error()
	}
}

func TestATracerSeesPushesAndAttempts(t *testing.T) {
	s := newServer(t)
	tracer := traces{make(chan string, 1)}
	mux := dq.NewMux()
	mux.HandleFunc("q", func(ctx context.Context, m *dq.Message) error {
		return errors.New(ctx.Value(traceKey{}).(string))
	})
	s.work(s.do, mux, dq.Tracing(tracer))
	ctx := context.WithValue(background, traceKey{}, "00-1-2-01")
	must(s.queue("q", dq.Tracing(tracer)).Push(ctx, nil, dq.Retries(0)))
	if span := <-tracer.spans; span != "00-1-2-01 00-1-2-01" {
		t.Error(span)
	}
}

func TestTheContextOfAHandlerEndsWithTheReason(t *testing.T) {
	s := newServer(t)
	began, causes := make(chan string, 1), make(chan error, 1)
	mux := dq.NewMux()
	handle := func(ctx context.Context, m *dq.Message) error {
		if ctx.Value(traceKey{}) != "of Run" || dq.Cause(ctx) != nil {
			t.Error(ctx, dq.Cause(ctx))
		}
		began <- m.ID
		<-ctx.Done()
		causes <- dq.Cause(ctx)
		return nil
	}
	mux.HandleFunc("q", handle)
	mux.HandleFunc("limited", handle, dq.TimeLimit(50*time.Millisecond))
	ctx, stop := context.WithCancel(context.WithValue(background, traceKey{}, "of Run"))
	ended, ready := make(chan error), make(chan bool)
	hook := dq.OnEvent(func(e dq.Event) {
		if e.Kind == dq.Ready {
			close(ready)
		}
	})
	go func() { ended <- dq.NewWorker(s.do, mux, dq.Grace(0), hook).Run(ctx) }()
	<-ready // Before, a cancellation is learnt at half time of the lease.

	must(s.queue("q").Push(background, nil, dq.ID("m")))
	s.ask("DQ.CANCEL", "q", <-began)
	var lost *dq.LostError
	if err := <-causes; !errors.Is(err, dq.ErrLost) || !errors.As(err, &lost) || lost.Reason != "cancelled" {
		t.Error(err)
	}
	must(s.queue("limited").Push(background, nil, dq.ID("m"), dq.Retries(0)))
	<-began
	if err := <-causes; err != dq.ErrTimeLimit {
		t.Error(err)
	}
	if text := s.state("limited", "m", "dead").Error; !strings.Contains(text, "time limit") {
		t.Error(text)
	}
	must(s.queue("q").Push(background, nil, dq.ID("m")))
	<-began
	stop()
	if err := <-causes; !errors.As(err, &lost) || lost.Reason != "stopping" {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if m := s.state("q", "m", "ready"); m.Attempt != 0 {
		t.Error(m.Attempt)
	}
}

func TestAResultThatIsTooLongIsLeftOut(t *testing.T) {
	s := newServer(t)
	done := make(chan dq.Event, 1)
	mux := dq.NewMux()
	mux.HandleFunc("q", func(_ context.Context, m *dq.Message) error { m.SetResult(make([]byte, 65537)); return nil })
	s.work(s.do, mux, dq.OnEvent(func(e dq.Event) {
		if e.Kind == dq.Done {
			done <- e
		}
	}))
	must(s.queue("q").Push(background, nil, dq.ID("m"), dq.Retain(time.Minute)))
	if e := <-done; !errors.Is(e.Err, dq.ErrResultTooLarge) {
		t.Error(e)
	}
	if result, err := s.queue("q").Await(background, "m"); !errors.Is(err, dq.ErrResultTooLarge) {
		t.Error(len(result), err)
	}
}

func TestLossesAreHeardOnAnotherDatabaseAndASocket(t *testing.T) {
	s := newServer(t)
	for _, url := range []string{s.url() + "/1", "unix://" + s.socket + "?db=1"} {
		do := must(redigo.Open(url))
		defer do.Close()
		began, causes := make(chan bool, 1), make(chan error, 1)
		mux := dq.NewMux()
		mux.HandleFunc("q", func(ctx context.Context, m *dq.Message) error {
			began <- true
			<-ctx.Done()
			causes <- dq.Cause(ctx)
			return nil
		})
		_, stop := s.work(do, mux, dq.Lease(time.Hour))
		q := dq.NewClient(do).Queue("q")
		id := must(q.Push(background, nil))
		<-began
		must(q.Cancel(background, id))
		if err := <-causes; !errors.Is(err, dq.ErrLost) {
			t.Error(url, err)
		}
		stop()
	}
}

func TestAURLIsRefusedByWhatIsNotUnderstood(t *testing.T) {
	for url, name := range map[string]string{
		"http://localhost": "http", "redis://h/jobs": `"jobs"`, "redis://h/-1": `"-1"`, "redis://h/1/": `"1/"`,
		"redis://h/99999999999": "99999999999", "redis://h?db=1": `"db"`, "redis://h?protocol=3": `"protocol"`,
		"rediss://h?tls=yes": `"tls"`, "unix:///s?db=x": `"x"`, "unix://run/s": `"run"`, "redis://h#insecure": `"insecure"`,
		"redis://ann@h": "password",
	} {
		if _, err := redigo.Open(url); err == nil || !strings.Contains(err.Error(), name) {
			t.Error(url, err)
		}
	}
	for _, url := range []string{"redis://", "redis://h/", "redis://:secret@h/3", "redis://h?protocol=2", "unix:///s"} {
		must(redigo.Open(url))
	}
}

func TestADatabaseThatIsNotThereIsAnError(t *testing.T) {
	s := newServer(t)
	do := must(redigo.Open(s.url() + "/99"))
	defer do.Close()
	_, err := dq.NewClient(do).Queue("q").Push(background, nil)
	var refused dq.ServerError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "DB") {
		t.Error(err)
	}
}

func TestAFunctionIsEnoughForAWorker(t *testing.T) {
	s := newServer(t)
	var acked atomic.Int32
	mux := dq.NewMux()
	mux.HandleFunc("q", func(context.Context, *dq.Message) error { acked.Add(1); return nil })
	_, stop := s.work(dq.DoFunc(s.do.Do), mux, dq.Concurrency(2))
	for i := 0; i < 50; i++ {
		must(s.queue("q").Push(background, nil))
	}
	eventually(t, "all are acked", func() bool { return must(s.queue("q").Info(background)).Acked == 50 })
	begun := time.Now()
	stop()
	if passed := time.Since(begun); passed > 5*time.Second {
		t.Error(passed)
	}
}

func TestHealthFollowsTheWorker(t *testing.T) {
	s := newServer(t)
	mux := dq.NewMux()
	mux.HandleFunc("q", func(context.Context, *dq.Message) error { return nil })
	if dq.NewWorker(s.do, mux).IsHealthy() {
		t.Error("it does not run yet")
	}
	worker, stop := s.work(s.do, mux)
	if !worker.IsHealthy() {
		t.Error("it consumes")
	}
	stop()
	if worker.IsHealthy() {
		t.Error("it has stopped")
	}
}

func TestEventsTellWhatBecomesOfMessages(t *testing.T) {
	s := newServer(t)
	var mu sync.Mutex
	said := map[dq.EventKind]int{}
	mux := dq.NewMux()
	mux.HandleFunc("q", func(_ context.Context, m *dq.Message) error {
		errs := map[string]error{"fail": io.EOF, "reject": dq.ErrReject, "retry": dq.RetryAfter(time.Hour, nil)}
		return errs[string(m.Payload)]
	})
	s.work(s.do, mux, dq.OnEvent(func(e dq.Event) {
		mu.Lock()
		defer mu.Unlock()
		said[e.Kind]++
	}))
	for _, payload := range []string{"ok", "fail", "reject", "retry"} {
		must(s.queue("q").Push(background, []byte(payload), dq.Retries(0)))
	}
	eventually(t, "each is told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		ends := said[dq.Done]*1000 + said[dq.Failed]*100 + said[dq.Rejected]*10 + said[dq.Retried]
		return said[dq.Started] == 4 && ends == 1111
	})
}

func TestAWorkerSaysWhatIsWrongWithIt(t *testing.T) {
	nothing := dq.DoFunc(func(context.Context, ...any) (any, error) { return nil, nil })
	mux := dq.NewMux()
	err := dq.NewWorker(nothing, mux).Run(background)
	if err == nil || !strings.Contains(err.Error(), "no queue") {
		t.Error(err)
	}
	mux.HandleFunc("q", func(context.Context, *dq.Message) error { return nil }, dq.Concurrency(0))
	err = dq.NewWorker(nothing, mux).Run(background)
	if err == nil || !strings.Contains(err.Error(), "at least 1") {
		t.Error(err)
	}
	for name, option := range map[string]dq.WorkerOption{
		"Lease": dq.Lease(-1), "TimeLimit": dq.TimeLimit(-1), "Grace": dq.Grace(-1),
	} {
		mux := dq.NewMux()
		mux.HandleFunc("q", func(context.Context, *dq.Message) error { return nil })
		err = dq.NewWorker(nothing, mux, option).Run(background)
		if err == nil || !strings.Contains(err.Error(), name+"(-1ns)") {
			t.Error(err)
		}
	}
}
