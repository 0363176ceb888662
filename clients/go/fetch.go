package dq

import (
	"context"
	"runtime"
	"time"
)

const (
	// How often the settings of a queue are read again.
	learnInterval = 5 * time.Second
	// After a pop whose reply was lost, how long it takes until twice as many messages are asked for again. The reply may
	// have been larger than the server, or what is between, lets pass, and what is lost with it waits for the end of its
	// lease.
	carefulTime = time.Minute
)

// fetcher pops the messages of a lane: never more than there are free places, and with the acks of those that have
// ended. While it waits in a pop that blocks, acks go through the reporter; otherwise they go with the next pop.
type fetcher struct {
	*lane
	conn    Conn
	name    string
	learned time.Time
	wait    time.Duration
	most    int // how many messages a pop asks for at most
	asked   int // how many the pop asks for whose reply has not come
	careful time.Time
}

// fetch pops until the worker stops.
func (l *lane) fetch() {
	f := &fetcher{lane: l, name: l.worker.consumer(), most: l.settings.concurrency}
	var pauses backoff
	interrupted := false
	for !l.worker.stopping.Load() {
		err := f.connect()
		for err == nil && !l.worker.stopping.Load() {
			if err = f.step(); err == nil {
				pauses = backoff{}
				l.answered.Store(int64(time.Since(processStart)))
				l.refusedSince.Store(0)
				if interrupted {
					interrupted = false
					l.worker.emit(Event{Kind: Resumed, Queue: l.queue})
				}
			}
		}
		f.disconnect()
		l.flushAcks()
		f.beCareful(err)
		if err != nil && !l.worker.stopping.Load() {
			if !interrupted {
				interrupted = true
				l.worker.emit(Event{Kind: Interrupted, Queue: l.queue, Err: err})
			}
			waitFor(l.worker.running.Done(), pauses.next())
		}
	}
	l.flushAcks()
}

func (f *fetcher) ask(patience time.Duration, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(f.worker.work, patience+replyMargin)
	defer cancel()
	reply, err := f.conn.Do(ctx, args...)
	return reply, translate(err)
}

// connect opens a connection, and learns its id: with CLIENT UNBLOCK its waits are ended when the worker stops. HELLO
// returns the id to users without the right to CLIENT ID, and servers without HELLO have CLIENT ID. Without an id,
// waits are short.
func (f *fetcher) connect() error {
	ctx, cancel := context.WithTimeout(f.worker.running, replyMargin)
	defer cancel()
	conn, err := dial(ctx, f.worker.do, f.key)
	if err != nil {
		return translate(err)
	}
	f.conn, f.learned, f.wait = conn, time.Time{}, shortPopWait
	f.mu.Lock()
	f.pops = conn
	f.mu.Unlock()
	if _, shared := conn.(pooled); shared {
		return nil
	}
	reply, err := f.ask(0, "HELLO")
	id := integer(fieldsOf(reply)["id"])
	if isServerError(err) {
		reply, err = f.ask(0, "CLIENT", "ID")
		id = integer(reply)
	}
	if err != nil && !isServerError(err) {
		return err
	}
	if f.connection.Store(id); id != 0 {
		f.wait = popWait
	}
	return nil
}

func (f *fetcher) disconnect() {
	f.connection.Store(0)
	if f.conn != nil {
		f.conn.Close()
		f.conn = nil
	}
}

// abandon closes the connection that pops, if the server cannot be asked to end the wait.
func (l *lane) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pops != nil {
		l.pops.Close()
	}
}

// step acks what has ended and pops what there is room for.
func (f *fetcher) step() error {
	if time.Since(f.learned) > learnInterval {
		if err := f.serverTime.read(func(args ...any) (any, error) { return f.ask(0, args...) }); err != nil {
			return err
		}
		reply, err := f.ask(0, "DQ.INFO", f.key)
		if err != nil && codeOf(err) != "NOPERM" {
			return err
		}
		f.learn(reply)
		f.learned = time.Now()
	}
	acks, room := f.turnOf()
	if f.worker.stopping.Load() {
		f.flushAcks(acks...)
		return nil
	}
	if len(acks) > 0 {
		return f.ackAndPop(acks, room)
	}
	args := f.options(append(make([]any, 0, 12), "DQ.POP", f.key), room)
	if !f.popped.Swap(true) {
		f.worker.consuming()
	}
	begun, wait := f.begun(), f.popWait(f.wait)
	reply, err := f.ask(wait, append(args, "BLOCK", ms(wait))...)
	if err == nil {
		f.asked = 0
		f.receive(reply, begun)
	}
	return err
}

// begun returns from when the leases of a pop count that is sent now, if the server does not tell its time.
func (f *fetcher) begun() (now time.Time) {
	if !f.serverTime.isKnown() {
		now = time.Now()
	}
	return now
}

// turnOf waits until there is an ack to send or a place to fill. Without an ack, those that come go through the
// reporter.
func (f *fetcher) turnOf() (acks []*delivery, room int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.collecting = true
	for len(f.acks) == 0 && f.working >= f.settings.concurrency && !f.worker.stopping.Load() {
		f.turn.Wait()
	}
	if len(f.acks) > 0 { // Handlers that are about to end share the round trip.
		f.mu.Unlock()
		runtime.Gosched()
		f.mu.Lock()
	}
	acks, f.acks = f.acks, nil
	f.collecting = len(acks) > 0
	return acks, f.settings.concurrency - f.working + len(acks)
}

// ackAndPop does not block, so that acks that were not answered are repeated soon.
func (f *fetcher) ackAndPop(acks []*delivery, room int) error {
	args := withReceipts(acks, "DQ.ACKPOP", f.key, len(acks))
	begun := f.begun()
	reply, err := f.ask(0, f.options(args, room)...)
	if err != nil {
		f.flushAcks(acks...)
		return err
	}
	f.asked = 0
	f.settled(acks...)
	if both := list(reply); len(both) == 2 {
		f.receive(both[1], begun)
	}
	return nil
}

// options appends the options of a pop, which asks for fewer messages if the reply to an earlier one was lost.
func (f *fetcher) options(args []any, room int) []any {
	if f.most < f.settings.concurrency && time.Now().After(f.careful) {
		f.most = lesser(f.most*2, f.settings.concurrency)
		f.careful = time.Now().Add(carefulTime)
	}
	f.asked = lesser(room, f.most)
	args = append(args, "COUNT", f.asked)
	return append(append(args, f.leaseWords()...), "META", "AS", f.name)
}

// beCareful has the next pops ask for fewer messages if the reply to a pop was lost.
func (f *fetcher) beCareful(err error) {
	if err == nil {
		return
	}
	f.refusedSince.CompareAndSwap(0, int64(time.Since(processStart)))
	if f.asked > 1 && !isServerError(err) {
		f.most = f.asked / 2
		f.careful = time.Now().Add(carefulTime)
	}
	f.asked = 0
}

func lesser(a, b int) int {
	if a < b {
		return a
	}
	return b
}
