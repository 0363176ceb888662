package dq

import "sync"

// So many calls of hooks may wait. Those beyond are dropped: a hook that blocks for so long reads them no more.
const mostAnnouncements = 100_000

// announcer calls what users hand in to watch a worker, hooks and loggers, in a goroutine of its own and in order. They
// may panic, or block for ever. Nothing that keeps a lease or reports an outcome waits for them.
type announcer struct {
	mu      sync.Mutex
	arrived *sync.Cond
	calls   []func()
	closed  bool
	done    chan struct{} // closed when nothing is left
	failed  func(value any)
}

func newAnnouncer(failed func(value any)) *announcer {
	a := &announcer{done: make(chan struct{}), failed: failed}
	a.arrived = sync.NewCond(&a.mu)
	return a
}

// announce has a call made.
func (a *announcer) announce(call func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.calls) < mostAnnouncements {
		a.calls = append(a.calls, call)
		a.arrived.Signal()
	}
}

// run makes calls until it is closed and nothing is left.
func (a *announcer) run() {
	ended := false
	defer func() {
		if !ended {
			go a.run() // A hook has ended the goroutine.
		}
	}()
	for call := a.next(); call != nil; call = a.next() {
		guarded(call, a.failed)
	}
	ended = true
	close(a.done)
}

func (a *announcer) next() func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.calls) == 0 && !a.closed {
		a.arrived.Wait()
	}
	if len(a.calls) == 0 {
		return nil
	}
	call := a.calls[0]
	a.calls = a.calls[1:]
	return call
}

// close has run end.
func (a *announcer) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.arrived.Signal()
}

// guarded calls what users hand in. What it panics with is passed to failed, which may panic as well.
func guarded(call func(), failed func(value any)) {
	defer func() {
		if value := recover(); value != nil {
			defer func() { _ = recover() }()
			failed(value)
		}
	}()
	call()
}
