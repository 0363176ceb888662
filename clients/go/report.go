package dq

import (
	"context"
	"time"
)

// report extends the leases of a queue at half time, and reports outcomes until they are answered, on a connection of
// its own. No handler can stall it.
func (l *lane) report() {
	var conn Conn
	var pauses backoff
	for {
		reports, kept, why := l.next()
		if len(reports) == 0 && len(kept) == 0 {
			break
		}
		err := l.send(&conn, reports, kept, why)
		if err == nil {
			pauses = backoff{}
			l.answered.Store(int64(time.Since(processStart)))
			continue
		}
		if conn != nil {
			conn.Close()
			conn = nil
		}
		l.mu.Lock()
		l.extendAt = time.Now()
		enough := l.closed && l.extendAt.After(l.patience)
		l.mu.Unlock()
		if enough {
			break
		}
		waitFor(l.worker.work.Done(), pauses.next())
	}
	if conn != nil {
		conn.Close()
	}
}

// next waits until there is something to send. It returns nothing once the worker is closed and everything is sent.
func (l *lane) next() (reports, kept []*delivery, why string) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for l.worker.work.Err() == nil {
		l.mu.Lock()
		now := time.Now()
		if l.extendFor != "" || (!l.extendAt.IsZero() && !l.extendAt.After(now)) {
			kept, why = l.leases(now)
		}
		reports, l.reports = l.reports, nil
		at, closed := l.extendAt, l.closed
		l.mu.Unlock()
		if len(reports) > 0 || len(kept) > 0 || closed {
			return reports, kept, why
		}
		var look <-chan time.Time
		if !at.IsZero() {
			timer.Reset(time.Until(at))
			look = timer.C
		}
		select {
		case <-l.nudge:
		case <-look:
		case <-l.worker.work.Done():
		}
	}
	return nil, nil, ""
}

// leases returns all deliveries if one of them is to be extended, and the reason of a loss. The lock is held.
func (l *lane) leases(now time.Time) (kept []*delivery, why string) {
	why, l.extendFor, l.extendAt = l.extendFor, "", time.Time{}
	extend := why != ""
	for _, d := range l.held {
		kept = append(kept, d)
		extend = extend || !d.due.After(now)
		l.extendAt = earlier(l.extendAt, d.due)
	}
	if !extend {
		return nil, ""
	}
	if why == "" {
		why = "lease"
	}
	return kept, why
}

// send sends everything in one round trip. What the server cannot do now is kept, and the error returned.
func (l *lane) send(conn *Conn, reports, kept []*delivery, why string) (err error) {
	ctx, cancel := context.WithTimeout(l.worker.work, replyMargin)
	defer cancel()
	if *conn == nil {
		if *conn, err = l.dialReporter(ctx); err != nil {
			*conn = nil
			l.again(reports)
			return err
		}
	}
	if len(kept) > 0 {
		if err = l.serverTime.refresh(asking(ctx, *conn)); err != nil {
			l.again(reports)
			return err
		}
	}
	var commands [][]any
	var subjects [][]*delivery // of each command that is an outcome
	if len(kept) > 0 {
		commands = append(commands, append(withReceipts(kept, "DQ.MEXTEND", l.key, len(kept)), l.leaseWords()...))
	}
	var acks []*delivery
	for _, d := range reports {
		if d.outcome.command == acked.command {
			acks = append(acks, d)
			continue
		}
		one := []*delivery{d}
		commands = append(commands, append(withReceipts(one, d.outcome.command, l.key), d.outcome.words...))
		subjects = append(subjects, one)
	}
	if len(acks) > 0 {
		commands = append(commands, withReceipts(acks, acked.command, l.key))
		subjects = append(subjects, acks)
	}
	sent := time.Now()
	replies, err := pipeline(ctx, *conn, commands)
	if err != nil {
		l.again(reports)
		return translate(err)
	}
	if len(kept) > 0 {
		err = refusal(replies[0])
		if err == nil {
			l.extended(kept, list(replies[0]), sent, time.Now(), why)
		} else if !isTransient(err) {
			l.worker.emit(Event{Kind: Refused, Queue: l.queue, Err: err})
		}
		replies = replies[1:]
	}
	for i, about := range subjects {
		refused := refusal(replies[i])
		if isTransient(refused) {
			l.again(about)
			err = refused
			continue
		} else if refused != nil {
			l.worker.emit(Event{Kind: Refused, Queue: l.queue, Err: refused})
		}
		about[0].logFailure(text(replies[i]))
		l.settled(about...)
	}
	return err
}

// dialReporter opens the connection of the reporter, and learns the time of its server.
func (l *lane) dialReporter(ctx context.Context) (Conn, error) {
	conn, err := dial(ctx, l.worker.do, l.key)
	if err != nil {
		return nil, translate(err)
	}
	if err = l.serverTime.read(asking(ctx, conn)); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// asking returns a function that sends a command on a connection.
func asking(ctx context.Context, conn Conn) func(args ...any) (any, error) {
	return func(args ...any) (any, error) {
		reply, err := conn.Do(ctx, args...)
		return reply, translate(err)
	}
}

func (l *lane) again(reports []*delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reports = append(reports, l.reports...)
}
