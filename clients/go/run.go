package dq

import (
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
	ctx, end := d.ctx, func(error) {}
	if l.worker.tracer != nil {
		ctx, end = l.worker.tracer.Start(ctx, d.message)
	}
	err := errExit
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value, debug.Stack()}
		}
		end(err)
		l.ended(d, outcomeOf(d.message, err))
	}()
	err = l.handler.Handle(ctx, d.message)
}

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
