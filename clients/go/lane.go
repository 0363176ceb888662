package dq

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// The lease of a queue that does not exist yet, or whose settings the user may not read: the default of the server.
	defaultLease = 30_000
	// How many losses are remembered whose notice has come before the reply to their pop.
	earlyLosses = 1000
)

// lane is the state of one queue of a worker: the messages that it holds, and the outcomes that the server has not
// answered yet.
//
// The goroutines of a lane meet here. The fetcher brings messages, handlers end, the alarm, the listener and the
// reporter find out that a message is lost. For each delivery exactly one of them decides the outcome. A message
// occupies its place until its handler has ended and its outcome is answered.
type lane struct {
	worker     *Worker
	queue, key string
	handler    Handler
	settings   settings

	popped, heard atomic.Bool  // whether it was popped, and whether notices of losses come, or cannot come
	connection    atomic.Int64 // the id of the connection that pops, 0 while there is none
	answered      atomic.Int64 // when the server answered last, in nanoseconds since processStart
	refusedSince  atomic.Int64 // since when pops have failed, likewise; 0 if they succeed
	serverTime    serverTime
	nudge         chan struct{} // wakes the reporter

	mu         sync.Mutex
	turn       *sync.Cond // wakes the fetcher
	pops       Conn
	lease      int64 // in ms
	maxLease   int64 // in ms, 0 without a limit, -1 if that is not known
	working    int
	held       map[string]*delivery // by receipt, those whose outcome is open
	acks       []*delivery          // for the next pop
	collecting bool                 // whether the fetcher takes acks along soon
	reports    []*delivery          // whose outcomes are to be reported
	// Those whose outcomes the server has not answered; whether their leases have ended meanwhile.
	unanswered map[*delivery]bool
	extendFor  string    // why all leases are extended at once: the reason of a loss that this shows
	extendAt   time.Time // when the reporter looks at the leases, zero if it need not
	alarmAt    time.Time // when the alarm goes off, zero if it does not
	alarm      *time.Timer
	early      map[string]string // reasons of losses by receipt
	closed     bool
	patience   time.Time // how long outcomes are sent again once it is closed
}

// delivery is a message that this worker holds.
type delivery struct {
	lane     *lane
	message  *Message
	ctx      context.Context
	cancel   func(error)
	begun    time.Time
	limit    time.Time // of the handler, or zero
	end      time.Time // of the lease, by the clock of this process
	due      time.Time // when the lease is to be extended
	deadline int64     // of the lease, by the clock of the server, in ms
	heard    time.Time // when that was received
	decided  bool
	outcome  outcome // once it is to be reported
	open     int     // what is to come: the end of the handler, and the answer to its outcome
}

// withReceipts returns the words of a command with the receipts of deliveries behind them, and room for some more.
func withReceipts(deliveries []*delivery, words ...any) []any {
	args := append(make([]any, 0, len(words)+len(deliveries)+10), words...)
	for _, d := range deliveries {
		args = append(args, d.message.Receipt)
	}
	return args
}

func newLane(w *Worker, queue string, set settings) *lane {
	l := &lane{
		worker: w, queue: queue, key: w.prefix + queue, handler: w.mux.handler(queue), settings: set,
		nudge: make(chan struct{}, 1), lease: defaultLease, maxLease: -1,
		held: map[string]*delivery{}, early: map[string]string{},
		unanswered: map[*delivery]bool{},
	}
	l.turn = sync.NewCond(&l.mu)
	l.alarm = time.AfterFunc(time.Hour, l.ring)
	l.alarm.Stop()
	l.answered.Store(int64(time.Since(processStart)))
	if set.lease > 0 {
		l.lease = ms(set.lease)
	}
	return l
}

// learn reads the settings of the queue from DQ.INFO.
func (l *lane) learn(reply any) {
	info := fieldsOf(reply)
	lease, maxLease := integer(info["lease"]), integer(info["maxlease"])
	if reply == nil {
		maxLease = -1 // The user may not read it, or the queue does not exist yet.
	}
	if l.settings.lease > 0 {
		lease = ms(l.settings.lease)
	} else if lease == 0 {
		lease = defaultLease
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease, l.maxLease = lease, maxLease
}

// receive takes in the messages of a pop and calls their handlers. Their leases began at begun or later; if that is
// zero, the time of the server was to tell when they end.
func (l *lane) receive(reply any, begun time.Time) {
	items := list(reply)
	if len(items) == 0 {
		return
	}
	now := time.Now()
	var deliveries, over []*delivery
	lost := map[*delivery]string{}
	l.mu.Lock()
	lease := l.leaseTime()
	for _, item := range items {
		d := l.newDelivery(list(item), now)
		left, known := l.serverTime.left(d.deadline, now)
		if !known && begun.IsZero() {
			left = lease
		} else if !known {
			left = lease - now.Sub(begun)
		}
		d.end, d.due = now.Add(left), now.Add(l.half(left))
		if !known && begun.IsZero() {
			d.due = now // It is extended at once, and then it is known how long that lasts.
		}
		if left <= 0 { // The reply came when another worker may have the message.
			over = append(over, d)
			continue
		}
		deliveries = append(deliveries, d)
		l.held[d.message.Receipt] = d
		if reason := l.early[d.message.Receipt]; reason != "" {
			lost[d] = reason
		}
		l.lookAt(d.due)
		l.ringAt(earlier(d.end, d.limit))
	}
	l.working += len(deliveries)
	l.mu.Unlock()
	for _, d := range over {
		d.cancel(nil)
		d.emit(Lost, &LostError{"lease"})
	}
	for d, reason := range lost {
		l.lose(d, reason)
	}
	for _, d := range deliveries {
		go d.run()
	}
}

func (l *lane) newDelivery(fields []any, now time.Time) *delivery {
	m := &Message{Queue: l.queue}
	d := &delivery{lane: l, message: m, begun: now, heard: now, open: 2}
	m.delivery = d
	if len(fields) >= 5 {
		m.ID, m.Payload, m.Attempt, m.Receipt = text(fields[0]), raw(fields[1]), int(integer(fields[2])), text(fields[3])
		meta := fieldsOf(fields[4])
		m.Created, m.Due, d.deadline = instant(meta["created"]), instant(meta["due"]), integer(meta["deadline"])
		m.Priority, m.Group, m.Headers = int(integer(meta["priority"])), text(meta["group"]), texts(meta["headers"])
		m.Checkpoint, m.LastError = raw(meta["checkpoint"]), text(meta["error"])
	}
	if l.settings.timeLimit > 0 {
		d.limit = now.Add(l.settings.timeLimit)
	}
	d.ctx, d.cancel = withCause(l.worker.values)
	if !d.limit.IsZero() {
		d.ctx = limited{d.ctx, d.limit}
	}
	return d
}

// decide lets exactly one caller decide the outcome of a delivery. It returns whether that is this one.
func (l *lane) decide(d *delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.decided {
		return false
	}
	d.decided = true
	delete(l.held, d.message.Receipt)
	return true
}

// ended is called when a handler has ended.
func (l *lane) ended(d *delivery, o outcome) {
	counts := l.decide(d)
	if counts && o.kind != Lost {
		d.emit(o.kind, o.err)
	}
	d.cancel(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	d.open--
	switch {
	case !counts:
		l.free(d)
	case o.command == acked.command && l.collecting:
		d.outcome = o
		l.unanswered[d] = false
		l.acks = append(l.acks, d)
		l.turn.Signal()
	default:
		l.enqueue(d, o)
	}
}

// lose takes a message from its handler that is no longer ours.
func (l *lane) lose(d *delivery, reason string) { l.take(d, &LostError{reason}, outcome{kind: Lost}) }

// take takes a message from its handler, with the outcome to report if the message is still ours.
func (l *lane) take(d *delivery, cause error, o outcome) {
	if !l.decide(d) {
		return
	}
	d.emit(o.kind, cause)
	d.cancel(cause)
	if o.command == "" {
		l.settled(d)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enqueue(d, o)
}

// settled is called when the outcome of a delivery needs no answer any more.
func (l *lane) settled(deliveries ...*delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range deliveries {
		d.open--
		delete(l.unanswered, d)
		l.free(d)
		if d.outcome.kind == Lost && d.outcome.command != "" {
			l.worker.givenBack.Add(1)
		}
	}
}

// hear is called when a command has taken a message from this worker, or from another one.
func (l *lane) hear(reason, receipt string) {
	l.mu.Lock()
	d := l.held[receipt]
	if d == nil {
		if len(l.early) >= earlyLosses {
			l.early = map[string]string{}
		}
		l.early[receipt] = reason
	}
	l.mu.Unlock()
	if d != nil {
		l.lose(d, reason)
	}
}

// ring loses messages whose lease is over by our own clock, and fails those whose handler has reached its time limit.
// It does no I/O, so it is in time if the server cannot be reached.
func (l *lane) ring() {
	now := time.Now()
	l.mu.Lock()
	l.alarmAt = time.Time{}
	var over, late []*delivery
	for _, d := range l.held {
		switch {
		case !d.end.After(now):
			over = append(over, d)
		case !d.limit.IsZero() && !d.limit.After(now):
			late = append(late, d)
		default:
			l.ringAt(earlier(d.end, d.limit))
		}
	}
	unreported := l.lateOutcomes(now)
	l.mu.Unlock()
	for _, d := range over {
		l.lose(d, "lease")
	}
	for _, d := range unreported {
		d.emit(Lost, &LostError{"lease"})
	}
	for _, d := range late {
		l.take(d, ErrTimeLimit, outcomeOf(d.message, ErrTimeLimit))
	}
}

// holding returns the deliveries whose outcome is open.
func (l *lane) holding() []*delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*delivery, 0, len(l.held))
	for _, d := range l.held {
		all = append(all, d)
	}
	return all
}

// extendAll extends all leases at once, which shows what is lost. The reason is that of such a loss.
func (l *lane) extendAll(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extendFor = reason
	l.wakeReporter()
}

// flushAcks passes the acks that wait for the fetcher to the reporter, and wakes the fetcher.
func (l *lane) flushAcks(more ...*delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.collecting = false
	for _, d := range append(more, l.acks...) {
		l.enqueue(d, acked)
	}
	l.acks = nil
	l.turn.Signal()
}

func (l *lane) isIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.working == 0
}

func (l *lane) isHealthy() bool {
	l.mu.Lock()
	patience := l.leaseTime()
	l.mu.Unlock()
	if patience < popWait+replyMargin {
		patience = popWait + replyMargin
	}
	now := time.Since(processStart)
	refused := time.Duration(l.refusedSince.Load())
	return now-time.Duration(l.answered.Load()) <= patience && (refused == 0 || now-refused <= patience)
}

// close has the reporter and the listener end.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.patience = true, time.Now().Add(lastMoment)
	l.alarm.Stop()
	l.wakeReporter()
}

// The lock is held in the following.

func (l *lane) enqueue(d *delivery, o outcome) {
	d.outcome = o
	if _, known := l.unanswered[d]; !known {
		l.unanswered[d] = false
	}
	l.reports = append(l.reports, d)
	l.wakeReporter()
}

func (l *lane) free(d *delivery) {
	if d.open > 0 {
		return
	}
	l.working--
	l.turn.Signal()
	select {
	case l.worker.freed <- struct{}{}:
	default:
	}
}

func (l *lane) wakeReporter() {
	select {
	case l.nudge <- struct{}{}:
	default:
	}
}

// lookAt has the reporter look at the leases at an instant, if it does not do so before.
func (l *lane) lookAt(at time.Time) {
	if l.extendAt.IsZero() || at.Before(l.extendAt) {
		l.extendAt = at
		l.wakeReporter()
	}
}

// ringAt sets the alarm to an instant, if it is not set to an earlier one.
func (l *lane) ringAt(at time.Time) {
	if l.alarmAt.IsZero() || at.Before(l.alarmAt) {
		l.alarmAt = at
		l.alarm.Reset(time.Until(at))
	}
}
