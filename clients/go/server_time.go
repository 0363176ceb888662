package dq

import (
	"strconv"
	"sync"
	"time"
)

const (
	// The clocks of two machines may differ by one part in this many of the time that passes.
	clockDrift = 1000
	// The deadlines of a server are whole milliseconds.
	clockRounding = 2 * time.Millisecond
	// For how long what is known of the clock of a server counts.
	clockFresh     = 5 * time.Second
	clockJustAsked = 200 * time.Millisecond
)

// processStart is the instant from which the clock of this process is counted, which nobody sets.
var processStart = time.Now()

// serverTime is by how much the clock of a server is ahead of ours, never less than it is: a lease then ends too early
// for us. The server says by its own clock when each lease ends, and nothing that the worker measures is as exact: the
// reply to a pop may be late, and the message may have a lease of its own, which the reply does not name.
type serverTime struct {
	mu    sync.Mutex
	known bool
	ahead time.Duration
	asked time.Time
}

// expire is called when somebody may have set the clock of the server: the next refresh asks for its time, if that was
// not just done.
func (s *serverTime) expire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isOld := time.Since(s.asked) > clockJustAsked
	if isOld {
		s.asked = time.Time{}
	}
	return isOld
}

// hasJumped returns whether a deadline, which has moved by more or less than the time that has passed, shows that a
// clock or a lease was set.
func hasJumped(grown, passed time.Duration) bool {
	difference := grown - passed
	if difference < 0 {
		difference = -difference
	}
	return grown == 0 || difference > 500*time.Millisecond+passed/10
}

// refresh asks the server for its time if it was not asked lately. Somebody may have set its clock.
func (s *serverTime) refresh(ask func(args ...any) (any, error)) error {
	s.mu.Lock()
	fresh := time.Since(s.asked) < clockFresh
	s.mu.Unlock()
	if fresh {
		return nil
	}
	return s.read(ask)
}

// read asks the server for its time. Without the right to that, leases are counted from the commands that begin them.
func (s *serverTime) read(ask func(args ...any) (any, error)) error {
	sent := time.Now()
	reply, err := ask("TIME")
	took := time.Since(sent)
	if err != nil && isTransient(err) {
		return err
	}
	parts := list(reply)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = sent
	if len(parts) != 2 {
		s.known = false
		return nil
	}
	ahead := parsed(parts[0], time.Second) + parsed(parts[1], time.Microsecond) - sent.Sub(processStart)
	if !s.known || ahead < s.ahead || ahead > s.ahead+took { // Otherwise the reply was late, and what is known is as good.
		s.known, s.ahead = true, ahead
	}
	return nil
}

func parsed(reply any, unit time.Duration) time.Duration {
	n, _ := strconv.ParseInt(text(reply), 10, 64)
	return time.Duration(n) * unit
}

// isKnown returns whether the server has told its time.
func (s *serverTime) isKnown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// left returns how much time is left until a deadline of the server, in Unix milliseconds, and whether that is known.
func (s *serverTime) left(deadline int64, now time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known || deadline == 0 {
		return 0, false
	}
	left := time.Duration(deadline)*time.Millisecond - now.Sub(processStart) - s.ahead
	drift := left / clockDrift
	if drift < 0 {
		drift = -drift
	}
	return left - drift - clockRounding, true
}
