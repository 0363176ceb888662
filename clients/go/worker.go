package dq

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	defaultConcurrency = 8
	defaultGrace       = 30 * time.Second
	// How long a pop waits, and how much later a reply may come before its connection counts as dead.
	popWait     = 5 * time.Second
	replyMargin = 5 * time.Second
	// How long a pop waits if it cannot be ended when the worker stops.
	shortPopWait = 500 * time.Millisecond
	// How long the server may take to end the waits of pops, until their connections are closed.
	unblockTime = 500 * time.Millisecond
	// How long the end of a worker waits for handlers that were asked to stop, and for answers to the last outcomes.
	lastMoment = time.Second
	// The most bytes of the name of a consumer.
	nameBytes = 128
)

// Worker takes messages of the queues of a [Mux], calls their handlers, keeps leases, and reports outcomes.
type Worker struct {
	do       Doer
	mux      *Mux
	defaults settings
	grace    time.Duration
	name     string
	prefix   string
	tracer   Tracer
	hooks    []func(Event)
	errorLog *log.Logger

	givenBack atomic.Int64 // messages, when it stopped

	announcer *announcer
	lanes     []*lane
	flaw      error           // what is wrong with the options
	running   context.Context // ends when the worker is to stop
	values    context.Context // the values of that context, for handlers
	work      context.Context // ends when nothing more is to be sent
	begun     atomic.Bool
	stopping  atomic.Bool
	readyOnce sync.Once
	freed     chan struct{} // nudged when a message has left the worker
	reporters sync.WaitGroup
}

// WorkerOption is an option of [NewWorker].
type WorkerOption interface{ forWorker(*Worker) }

type workerOption func(*Worker)

func (o workerOption) forWorker(w *Worker) { o(w) }

// Grace is how long handlers that run when the worker stops may go on. The default is 30 seconds.
func Grace(d time.Duration) WorkerOption { return workerOption(func(w *Worker) { w.grace = d }) }

// Name is the end of the name under which DQ.CONSUMERS lists the worker, host:pid:name. The default is "worker".
func Name(name string) WorkerOption { return workerOption(func(w *Worker) { w.name = name }) }

// OnEvent calls a hook with each [Event], in order, from a goroutine of its own.
func OnEvent(hook func(Event)) WorkerOption {
	return workerOption(func(w *Worker) { w.hooks = append(w.hooks, hook) })
}

// ErrorLog is the logger for messages that fail and servers that are away. The default is log.Default().
func ErrorLog(logger *log.Logger) WorkerOption {
	return workerOption(func(w *Worker) { w.errorLog = logger })
}

// NewWorker returns a worker on the queues of mux. Its connections are those of do if that is a [Dialer].
func NewWorker(do Doer, mux *Mux, options ...WorkerOption) *Worker {
	w := &Worker{
		do: do, mux: mux, grace: defaultGrace, name: "worker", errorLog: log.Default(),
		defaults: settings{concurrency: defaultConcurrency},
		freed:    make(chan struct{}, 1),
	}
	for _, option := range options {
		option.forWorker(w)
	}
	w.announcer = newAnnouncer(func(value any) { w.errorLog.Printf("dq: a hook panicked: %v", value) })
	for _, queue := range mux.queues {
		set := w.defaults
		for _, option := range mux.options[queue] {
			option.forHandler(&set)
		}
		if set.concurrency < 1 {
			w.flaw = fmt.Errorf("dq: the concurrency of queue %q is %d; it must be at least 1", queue, set.concurrency)
		}
		for name, d := range map[string]time.Duration{"Lease": set.lease, "TimeLimit": set.timeLimit, "Grace": w.grace} {
			if d < 0 {
				w.flaw = fmt.Errorf("dq: %s(%v) of queue %q is negative", name, d, queue)
			}
		}
		w.lanes = append(w.lanes, newLane(w, queue, set))
	}
	if len(w.lanes) == 0 {
		w.flaw = errors.New("dq: there is no queue to work on: give the Mux a handler before you make the worker")
	}
	return w
}

// Run works until ctx ends and then stops: it takes no further messages, gives handlers their [Grace], gives back what
// they have not completed, and returns nil. It does not wait for handlers that ignore the end of their context. A
// server that is away is waited for. An error means that an option is wrong, that the worker was run before, or that
// the server did not accept all outcomes within a moment, so that messages wait for the end of their leases.
func (w *Worker) Run(ctx context.Context) error {
	if w.begun.Swap(true) {
		return errors.New("dq: the worker was run before; make another one")
	}
	if w.flaw != nil {
		return w.flaw
	}
	w.running = ctx
	w.values = withoutCancel{ctx}
	work, end := context.WithCancel(w.values)
	defer end()
	w.work = work

	go w.announcer.run()
	defer func() {
		w.announcer.close()
		waitFor(w.announcer.done, lastMoment)
	}()
	var fetchers sync.WaitGroup
	for _, l := range w.lanes {
		fetchers.Add(1)
		w.reporters.Add(1)
		go func(l *lane) { defer fetchers.Done(); l.fetch() }(l)
		go func(l *lane) { defer w.reporters.Done(); l.report() }(l)
		go l.listen()
	}
	w.logBegin()
	<-ctx.Done()
	w.finish(&fetchers)
	return w.logEnd()
}

// IsHealthy returns whether each queue got an answer of the server within its last lease, or within the time of a pop.
// It may be called at any time, by a health check for example.
func (w *Worker) IsHealthy() bool {
	if !w.begun.Load() || w.stopping.Load() {
		return false
	}
	for _, l := range w.lanes {
		if !l.isHealthy() {
			return false
		}
	}
	return true
}

// SignalContext returns a context that ends at SIGTERM or SIGINT. A second signal ends the process at once, with exit
// code 128 plus its number.
func SignalContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel()
		number, _ := (<-signals).(syscall.Signal)
		os.Exit(128 + int(number))
	}()
	return ctx
}

// finish stops a worker that runs.
func (w *Worker) finish(fetchers *sync.WaitGroup) {
	w.stopping.Store(true)
	for _, l := range w.lanes {
		l.flushAcks()
	}
	popped := make(chan struct{})
	go func() { fetchers.Wait(); close(popped) }()
	go w.endPops(popped)
	grace := time.NewTimer(w.grace)
	defer grace.Stop()
	select {
	case <-popped:
		w.waitUntilIdle(grace.C)
	case <-grace.C:
	}
	w.giveBack()
	waitFor(popped, popWait+replyMargin)
	last := time.NewTimer(lastMoment)
	defer last.Stop()
	w.waitUntilIdle(last.C)
	for _, l := range w.lanes {
		l.close()
	}
	reported := make(chan struct{})
	go func() { w.reporters.Wait(); close(reported) }()
	waitFor(reported, lastMoment+replyMargin) // A server that is slow still gets what is on its way.
}

// giveBack ends the contexts of handlers that still run, and gives their messages back.
func (w *Worker) giveBack() {
	for _, l := range w.lanes {
		for _, d := range l.holding() {
			l.take(d, &LostError{"stopping"}, givenBack)
		}
	}
}

// waitUntilIdle waits until no message is here.
func (w *Worker) waitUntilIdle(enough <-chan time.Time) {
	for {
		idle := true
		for _, l := range w.lanes {
			idle = idle && l.isIdle()
		}
		if idle {
			return
		}
		select {
		case <-w.freed:
		case <-enough:
			return
		}
	}
}

// waitFor waits until done is closed, but not for longer.
func waitFor(done <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// endPops ends the waits of pops. A message that is delivered to one of them meanwhile is received and given back. If
// the server does not end them, their connections are closed, and what was on its way is delivered again after its
// lease.
func (w *Worker) endPops(popped <-chan struct{}) {
	if _, perKey := w.do.(KeyDialer); !perKey {
		w.endPopsOf(w.lanes, popped)
		return
	}
	for _, l := range w.lanes {
		go w.endPopsOf([]*lane{l}, popped)
	}
}

func (w *Worker) endPopsOf(lanes []*lane, popped <-chan struct{}) {
	err := w.unblock(lanes, popped)
	for _, l := range lanes {
		if isServerError(err) {
			w.emit(Event{Kind: Refused, Queue: l.queue, Err: fmt.Errorf("the connection of the pop is closed: %w", err)})
		}
		l.abandon()
	}
}

// unblock has the server end the waits of pops, until no pop is left. One server has all these queues.
//
// While writes are paused, a pop is put off, and some servers crash when such a client is unblocked. The transaction
// has a write, an ack of what no id can be, so that it is put off as well.
func (w *Worker) unblock(lanes []*lane, popped <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(w.work, unblockTime)
	conn, err := dial(ctx, w.do, lanes[0].key)
	cancel()
	if err != nil {
		return translate(err)
	}
	defer conn.Close()
	// A connection on which nothing arrives may be dead, although another one is served.
	for end := time.Now().Add(unblockTime); time.Now().Before(end); {
		var commands [][]any
		for _, l := range lanes {
			if id := l.connection.Load(); id != 0 {
				commands = append(commands, []any{"MULTI"}, []any{"DQ.ACK", l.key, "#"}, []any{"CLIENT", "UNBLOCK", id},
					[]any{"EXEC"})
			}
		}
		ctx, cancel := context.WithTimeout(w.work, unblockTime)
		replies, err := pipeline(ctx, conn, commands)
		cancel()
		if err != nil {
			return translate(err)
		}
		for _, reply := range replies {
			if err := refusal(reply); err != nil {
				return err
			}
		}
		select {
		case <-popped:
			return nil
		case <-time.After(20 * time.Millisecond): // One may have been about to wait.
		}
	}
	return nil
}

// consuming reports once that every queue is popped and notices of losses come.
func (w *Worker) consuming() {
	for _, l := range w.lanes {
		if !l.popped.Load() || !l.heard.Load() {
			return
		}
	}
	w.readyOnce.Do(func() { w.emit(Event{Kind: Ready}) })
}

// consumer is the name that the worker pops under.
func (w *Worker) consumer() string {
	host, _ := os.Hostname()
	end := cut(fmt.Sprintf(":%d:%s", os.Getpid(), w.name), nameBytes)
	return cut(host, nameBytes-len(end)) + end
}

// withoutCancel is a context with the values of another one that does not end with it.
type withoutCancel struct{ context.Context }

func (withoutCancel) Deadline() (time.Time, bool) { return time.Time{}, false }
func (withoutCancel) Done() <-chan struct{}       { return nil }
func (withoutCancel) Err() error                  { return nil }
