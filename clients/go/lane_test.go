package dq

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

// round is an MEXTEND: when it was sent, when it reached the server, and when its reply came, in ms after the pop.
type round struct{ sent, reached, heard int64 }

// endAfter returns when the lease of a delivery ends, in ms after its pop, by the clock of the worker.
func endAfter(t *testing.T, lease, maxLease int64, rounds ...round) int64 {
	mux := NewMux()
	mux.HandleFunc("q", func(context.Context, *Message) error { return nil })
	w := NewWorker(DoFunc(nil), mux, Lease(time.Duration(lease)*time.Millisecond))
	l := w.lanes[0]
	start := time.Now()
	at := func(ms int64) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	d := &delivery{lane: l, message: &Message{}, end: at(lease), heard: start, deadline: 1_000_000 + lease}
	for _, x := range rounds {
		deadline := x.reached + lease
		if maxLease > 0 && deadline > maxLease {
			deadline = maxLease
		}
		l.extended([]*delivery{d}, []any{1_000_000 + deadline}, at(x.sent), at(x.heard), "lease")
	}
	return d.end.Sub(start).Milliseconds()
}

func TestASlowExtensionDoesNotShortenLaterLeases(t *testing.T) {
	end := endAfter(t, 1000, 0, round{500, 940, 940}, round{1000, 1000, 1001}, round{1500, 1500, 1501})
	if end != 2500 {
		t.Error(end)
	}
}

func TestASlowClockOfTheServerDoesNotShortenLeases(t *testing.T) {
	var rounds []round
	for n := int64(1); n < 1000; n++ {
		rounds = append(rounds, round{sent: n * 5000, reached: n * 4998, heard: n*5000 + 1})
	}
	if end := endAfter(t, 10_000, 0, rounds...); end != 999*5000+10_000 {
		t.Error(end - 999*5000)
	}
}

func TestALeaseEndsWhereTheLongestLeaseCutsIt(t *testing.T) {
	end := endAfter(t, 600, 1000, round{300, 301, 302}, round{600, 601, 602}, round{900, 901, 902})
	if end < 995 || end > 1005 {
		t.Error(end)
	}
}

func TestDurationsAreRoundedUp(t *testing.T) {
	longest := time.Duration(math.MaxInt64)
	for d, want := range map[time.Duration]int64{
		longest: longest.Milliseconds() + 1, -1: -1, -1500 * time.Microsecond: -2, time.Second: 1000,
	} {
		if got := ms(d); got != want {
			t.Errorf("%v is %v ms, not %v", d, got, want)
		}
	}
}

func TestARetryAfterNoTimeIsAFailure(t *testing.T) {
	for d, want := range map[time.Duration]EventKind{
		0: Retried, longestDelay: Retried, -1: Failed, math.MinInt64: Failed, longestDelay + 1: Failed, math.MaxInt64: Failed,
	} {
		o := outcomeOf(&Message{}, RetryAfter(d, io.EOF))
		if o.kind != want || !errors.Is(o.err, io.EOF) || want == Failed && !strings.Contains(o.err.Error(), d.String()) {
			t.Error(d, o)
		}
	}
}
