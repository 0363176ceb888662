package dq

import (
	"context"
	"time"
)

// What a lane does about leases: how long they last, how far they were extended, and which have ended.

// leaseWords returns the lease that a command asks for. Without one, that of the message counts, else that of the
// queue. How long that of a message lasts only the time of the server tells, so without it that of the queue is asked
// for.
func (l *lane) leaseWords() []any {
	if l.settings.lease <= 0 && l.serverTime.isKnown() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return []any{"LEASE", l.lease}
}

// popWait returns how long a pop may wait. Leases that count from its sending are not to be over when its reply
// arrives.
func (l *lane) popWait(most time.Duration) time.Duration {
	if l.serverTime.isKnown() {
		return most
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if half := l.leaseTime() / 2; half < most {
		most = half
	}
	if most < time.Millisecond {
		return time.Millisecond
	}
	return most
}

// leaseTime returns how long a lease of a message without one of its own lasts. The lock is held.
func (l *lane) leaseTime() time.Duration {
	if l.maxLease > 0 && l.maxLease < l.lease {
		return time.Duration(l.maxLease) * time.Millisecond
	}
	return time.Duration(l.lease) * time.Millisecond
}

// limited is a context that ends at the time limit of a handler, so that what the handler calls knows how long it has.
type limited struct {
	context.Context
	at time.Time
}

func (c limited) Deadline() (time.Time, bool) { return c.at, true }

// never is far enough away for leases that are not to be extended.
const never = 100 * 365 * 24 * time.Hour

// extended notes the new ends of leases, which a command that was sent at sent, and answered now, has
// extended, and what is lost.
func (l *lane) extended(kept []*delivery, deadlines []any, sent, now time.Time, why string) {
	var lost []*delivery
	l.mu.Lock()
	for i, d := range kept {
		if i >= len(deadlines) || deadlines[i] == nil {
			lost = append(lost, d)
			continue
		}
		deadline := integer(deadlines[i])
		grown, passed := time.Duration(deadline-d.deadline)*time.Millisecond, sent.Sub(d.heard)
		mayBeCut := l.maxLease != 0
		left, known := l.serverTime.left(deadline, now)
		if !known {
			left = l.leaseTime() - now.Sub(sent)
			isCut := d.deadline != 0 && mayBeCut && grown < passed-passed/clockDrift-clockRounding
			if cut := d.end.Add(grown).Sub(now); isCut && cut < left {
				left = cut // MAXLEASE has cut it, since it has grown by less than the time that has passed.
			}
		}
		d.due = now.Add(l.half(left))
		if mayBeCut && deadline == d.deadline && passed > clockRounding {
			d.due = now.Add(never) // MAXLEASE permits nothing more.
		}
		isCut := mayBeCut && grown < passed
		if d.deadline != 0 && !isCut && hasJumped(grown, now.Sub(d.heard)) && l.serverTime.expire() {
			d.due = now // It is extended again at once, and then it is known how long that lasts.
		}
		d.deadline, d.heard, d.end = deadline, now, now.Add(left)
		l.lookAt(d.due)
		l.ringAt(earlier(d.end, d.limit))
	}
	l.mu.Unlock()
	for _, d := range lost {
		l.lose(d, why)
	}
}

// lateOutcomes returns the deliveries whose leases have ended before the server has answered their outcomes, each once.
// They are reported nevertheless: an ack counts until another worker has the message. The lock is held.
func (l *lane) lateOutcomes(now time.Time) (late []*delivery) {
	for d, isLate := range l.unanswered {
		if isLate {
			continue
		}
		if d.end.After(now) {
			l.ringAt(d.end)
			continue
		}
		l.unanswered[d] = true
		late = append(late, d)
	}
	return late
}

// half returns when a lease is extended that has so long left: at half, but also of the lease of the queue, as the
// clock of the server may be set. The lock is held.
func (l *lane) half(left time.Duration) time.Duration {
	if lease := l.leaseTime(); lease < left {
		left = lease
	}
	return left / 2
}
