package dq

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
)

// run calls the handler of a delivery. A message that was not begun is given back when the worker stops.
func (d *delivery) run() {
	l := d.lane
	if l.worker.stopping.Load() || d.ctx.Err() != nil {
		l.ended(d, givenBack) // That counts only if it was not lost before it began.
		return
	}
	d.emit(Started, nil)
	ctx, end := d.traced()
	err := errExit
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value, debug.Stack()}
		}
		if end != nil {
			guarded(func() { end(err) }, l.worker.tracerFailed)
		}
		l.ended(d, outcomeOf(d.message, err))
	}()
	err = l.handler.Handle(ctx, d.message)
}

// traced begins the span of the delivery, if there is a tracer; otherwise there is no function that ends it.
func (d *delivery) traced() (ctx context.Context, end func(error)) {
	ctx = d.ctx
	w := d.lane.worker
	if w.tracer == nil {
		return ctx, end
	}
	guarded(func() {
		if spanned, ended := w.tracer.Start(d.ctx, d.message); spanned != nil && ended != nil {
			ctx, end = spanned, ended
		}
	}, w.tracerFailed)
	return ctx, end
}

func (w *Worker) tracerFailed(value any) {
	w.announcer.announce(func() { w.errorLog.Printf("dq: the tracer panicked: %v", value) })
}

// outcomeOf returns the outcome of a handler that returned err, whose own methods may panic.
func outcomeOf(m *Message, err error) outcome {
	if err == nil {
		return successOf(m)
	}
	o := outcome{Failed, "DQ.NACK", []any{"ERROR", errUnreadable.Error()}, errUnreadable}
	guarded(func() { o = failureOf(err) }, func(any) {})
	return o
}

// errUnreadable stands for an error whose text cannot be read.
var errUnreadable = errors.New("the text of this error cannot be read")

// errExit is the error of a handler that neither returned nor panicked.
var errExit = errors.New("the handler ended its goroutine")

// origin returns the part of a stack that begins where a panic did.
func origin(stack string) string {
	if _, after, found := strings.Cut(stack, "\npanic("); found {
		if lines := strings.SplitN(after, "\n", 3); len(lines) == 3 {
			return lines[2]
		}
	}
	return stack
}
