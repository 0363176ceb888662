package dq_test

import (
	"context"
	"log"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dq"
)

// typedNil is an error whose method panics if it is nil, as one that is returned by mistake is.
type typedNil struct{ text string }

func (e *typedNil) Error() string        { return e.text }
func (e *typedNil) Is(error) bool        { return e.text == "" }
func (e *typedNil) Unwrap() error        { panic("no") }
func (panics) Write([]byte) (int, error) { panic("a full disk") }

type panics struct{}

// panicTracer panics wherever it is called.
type panicTracer struct{ end bool }

func (panicTracer) Inject(context.Context, map[string]string) {}
func (p panicTracer) Start(ctx context.Context, _ *dq.Message) (context.Context, func(error)) {
	if !p.end {
		panic("no span")
	}
	return ctx, func(error) { panic("no end") }
}

func TestHooksThatFailHarmNothing(t *testing.T) {
	blocked := make(chan struct{})
	t.Cleanup(func() { close(blocked) })
	var exits atomic.Bool
	for name, option := range map[string]dq.WorkerOption{
		"a panic": dq.OnEvent(func(dq.Event) { panic("a hook") }),
		"an exit": dq.OnEvent(func(dq.Event) {
			if !exits.Swap(true) {
				runtime.Goexit()
			}
		}),
		"a logger": dq.ErrorLog(log.New(panics{}, "", 0)),
		"a tracer": dq.Tracing(panicTracer{}),
		"an end":   dq.Tracing(panicTracer{end: true}),
		"a hook blocks": dq.OnEvent(func(e dq.Event) {
			if e.Kind == dq.Started {
				<-blocked
			}
		}),
	} {
		option := option
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			mux := dq.NewMux()
			mux.HandleFunc("q", func(_ context.Context, m *dq.Message) error {
				switch {
				case m.ID == "panics":
					panic("a handler")
				case m.ID == "nil":
					var err *typedNil
					return err
				case m.ID == "long":
					time.Sleep(5 * time.Second)
				}
				return nil
			}, dq.Lease(2*time.Second), dq.Concurrency(2))
			worker := dq.NewWorker(s.do, mux, option, dq.Grace(time.Second))
			ctx, stop := context.WithCancel(background)
			ended := make(chan error)
			go func() { ended <- worker.Run(ctx) }()
			defer func() { stop(); <-ended }()
			q := s.queue("q")
			must(q.Push(background, nil, dq.ID("long")))
			must(q.Push(background, nil, dq.ID("panics"), dq.Retries(0)))
			must(q.Push(background, nil, dq.ID("nil"), dq.Retries(0)))
			must(q.Push(background, nil))
			s.state("q", "panics", "dead")
			s.state("q", "nil", "dead")
			eventually(t, "the others are done", func() bool { return must(q.Info(background)).Acked == 2 })
			if delivered := must(q.Info(background)).Delivered; delivered != 4 {
				t.Error(delivered)
			}
		})
	}
}

func TestAHandlerKnowsItsTimeLimit(t *testing.T) {
	s := newServer(t)
	mux := dq.NewMux()
	left := make(chan time.Duration, 1)
	mux.HandleFunc("q", func(ctx context.Context, _ *dq.Message) error {
		end, ok := ctx.Deadline()
		if !ok {
			end = time.Time{}
		}
		left <- time.Until(end)
		return nil
	}, dq.TimeLimit(time.Minute))
	s.work(s.do, mux)
	must(s.queue("q").Push(background, nil))
	if d := <-left; d < 50*time.Second || d > time.Minute {
		t.Error(d)
	}
}

func TestAMissingHandlerIsRefused(t *testing.T) {
	for name, handle := range map[string]func(*dq.Mux){
		"handler": func(x *dq.Mux) { x.Handle("q", nil) },
		"func":    func(x *dq.Mux) { x.HandleFunc("q", nil) },
		"json":    func(x *dq.Mux) { dq.HandleJSON[int](x, "q", nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error(name)
				}
			}()
			handle(dq.NewMux())
		}()
	}
}

func TestACheckpointIsSavedWhenTheServerCanAgain(t *testing.T) {
	s := newServer(t)
	mux := dq.NewMux()
	saved := make(chan error, 1)
	mux.HandleFunc("q", func(ctx context.Context, m *dq.Message) error {
		s.ask("REPLICAOF", "127.0.0.1", "1")
		time.AfterFunc(time.Second, func() { _, _ = s.do.Do(background, "REPLICAOF", "NO", "ONE") })
		saved <- m.Save(ctx, []byte("half"))
		<-ctx.Done()
		return nil
	})
	s.work(s.do, mux, dq.Grace(100*time.Millisecond))
	must(s.queue("q").Push(background, nil, dq.ID("m")))
	if err := <-saved; err != nil {
		t.Fatal(err)
	}
	if m := must(s.queue("q").Get(background, "m")); string(m.Checkpoint) != "half" {
		t.Errorf("%+v", m)
	}
}

func TestTheErrorOfAServerWithoutTheModuleShowsNoPayload(t *testing.T) {
	err := dq.ServerError("ERR unknown command 'DQ.PUSH', with args beginning with: 'q' '4711-0815' ")
	if text := err.Error(); strings.Contains(text, "4711") || !strings.HasSuffix(text, "'DQ.PUSH'") {
		t.Error(text)
	}
}

func TestAnAddressOfAnotherNodeIsExplained(t *testing.T) {
	err := dq.ServerError("MOVED 15495 127.0.0.1:23062")
	if text := err.Error(); err.Code() != "MOVED" || !strings.Contains(text, "another node holds the queue") ||
		!strings.Contains(text, "127.0.0.1:23062") {
		t.Error(text)
	}
}
