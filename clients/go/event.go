package dq

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// EventKind is the kind of an [Event].
type EventKind string

// Events of a worker, of messages, and of queues.
const (
	// Ready: every queue is popped, and the worker receives notices of losses, if the server permits that.
	Ready EventKind = "ready"

	// Started: a handler begins.
	Started EventKind = "started"
	// Done: the handler returned nil. Err is set if its result could not be kept.
	Done EventKind = "done"
	// Failed: the handler returned an error, panicked, or reached its time limit.
	Failed EventKind = "failed"
	// Rejected: the handler returned ErrReject.
	Rejected EventKind = "rejected"
	// Retried: the handler returned RetryAfter.
	Retried EventKind = "retried"
	// Lost: the message was taken from its handler; Err is a *LostError.
	Lost EventKind = "lost"

	// Interrupted: a queue cannot be popped now; Err is the reason.
	Interrupted EventKind = "interrupted"
	// Resumed: the queue can be popped again.
	Resumed EventKind = "resumed"
	// Refused: the server does not accept a command of the worker, which goes on without it.
	Refused EventKind = "refused"
)

// Event is what a worker reports to its hooks.
type Event struct {
	Kind    EventKind
	Queue   string
	ID      string
	Attempt int
	// Duration is how long the message has been with this worker.
	Duration time.Duration
	Err      error
}

// emit has the hooks called, and logs what an operator wants to read.
func (w *Worker) emit(e Event) {
	for _, hook := range w.hooks {
		hook := hook
		w.announcer.announce(func() { hook(e) })
	}
	if e.isLogged() {
		w.announcer.announce(func() { w.log(e) })
	}
}

// isLogged returns whether an operator wants to read it. Failures are logged with what the server answers to them.
func (e Event) isLogged() bool {
	switch e.Kind {
	case Done:
		return e.Err != nil
	case Lost, Interrupted, Resumed, Refused:
		return true
	case Ready, Started, Failed, Rejected, Retried:
		return false
	}
	return false
}

func (w *Worker) log(e Event) {
	switch e.Kind {
	case Done:
		w.errorLog.Printf("dq: %s: message %q: %v", e.Queue, e.ID, e.Err)
	case Lost:
		w.errorLog.Printf("dq: %s: message %q: %s at attempt %d: %v", e.Queue, e.ID, e.Kind, e.Attempt, e.Err)
	case Interrupted, Refused:
		w.errorLog.Printf("dq: %s: %s: %v", e.Queue, e.Kind, e.Err)
	case Resumed:
		w.errorLog.Printf("dq: %s: %s", e.Queue, e.Kind)
	}
}

// logFailure logs an outcome to which the server has answered the new state of the message.
func (d *delivery) logFailure(state string) {
	m, o, end := d.message, d.outcome, ""
	if state == "dead" {
		end = "; now dead"
	}
	if o.kind == Failed || o.kind == Rejected || o.kind == Retried && end != "" {
		w := d.lane.worker
		var panicked *panicError
		if errors.As(o.err, &panicked) {
			end += "\n" + origin(string(panicked.stack))
		}
		w.announcer.announce(func() {
			w.errorLog.Printf("dq: %s: message %q: %s at attempt %d: %v%s", m.Queue, m.ID, o.kind, m.Attempt, o.err, end)
		})
	}
}

// logBegin logs what the worker works on.
func (w *Worker) logBegin() {
	queues := make([]string, len(w.lanes))
	for i, l := range w.lanes {
		queues[i] = fmt.Sprintf("%s (%d at a time)", l.queue, l.settings.concurrency)
	}
	w.announcer.announce(func() { w.errorLog.Printf("dq: %s works on %s", w.consumer(), strings.Join(queues, ", ")) })
}

// logEnd logs what went back when the worker stopped. It returns an error if the server has not accepted all outcomes.
func (w *Worker) logEnd() (err error) {
	unanswered := 0
	for _, l := range w.lanes {
		l.mu.Lock()
		unanswered += len(l.unanswered)
		l.mu.Unlock()
	}
	if unanswered > 0 {
		err = fmt.Errorf("dq: %s could not report %d messages, which are delivered again when their leases are over",
			w.consumer(), unanswered)
	}
	w.announcer.announce(func() {
		w.errorLog.Printf("dq: %s has stopped; %d messages went back", w.consumer(), w.givenBack.Load())
		if err != nil {
			w.errorLog.Print(err)
		}
	})
	return err
}

func (d *delivery) emit(kind EventKind, err error) {
	m := d.message
	d.lane.worker.emit(Event{
		Kind: kind, Queue: m.Queue, ID: m.ID, Attempt: m.Attempt, Duration: time.Since(d.begun), Err: err,
	})
}
