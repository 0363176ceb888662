package dq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"dq"
	"dq/redigo"

	"github.com/gomodule/redigo/redis"
)

func TestEveryOptionOfAPushArrives(t *testing.T) {
	s := newServer(t)
	q := s.queue("q")
	due := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	id := must(q.Push(background, []byte("x\x00\xff"), dq.ID("m"), dq.At(due), dq.Priority(-3), dq.Retries(2),
		dq.Lease(7*time.Second), dq.TTL(time.Minute), dq.Replace(), dq.MaxWait(2*time.Hour), dq.Retain(time.Second),
		dq.Group("g"), dq.Batch("b"), dq.Header("a", "1"), dq.Header("b", "\xff")))
	if batch := must(q.BatchInfo(background, "b")); batch.Total != 1 || batch.Left != 1 || batch.Closed {
		t.Errorf("%+v", batch)
	}
	m := must(q.Get(background, id))
	if id != "m" || string(m.Payload) != "x\x00\xff" || !m.Due.Equal(due) || m.Priority != -3 || m.Retries != 2 ||
		m.Lease != 7*time.Second || m.TTL != time.Minute || m.Group != "g" || m.State != "delayed" ||
		!reflect.DeepEqual(m.Headers, map[string]string{"a": "1", "b": "\xff"}) {
		t.Errorf("%+v", m)
	}
}

func TestAMessageIsNeverDueTooEarly(t *testing.T) {
	s := newServer(t)
	m := must(s.queue("q").Get(background, must(s.queue("q").Push(background, nil, dq.Delay(1500*time.Microsecond)))))
	if m.Due.Sub(m.Created) < 2*time.Millisecond {
		t.Error(m.Due.Sub(m.Created))
	}
	at := time.Now().Truncate(time.Second).Add(time.Hour + time.Microsecond)
	if due := must(s.queue("q").Get(background, must(s.queue("q").Push(background, nil, dq.At(at))))).Due; due.Before(at) {
		t.Errorf("%v is before %v", due, at)
	}
}

func TestADuplicateIsAnErrorWithItsID(t *testing.T) {
	s := newServer(t)
	q := s.queue("q")
	must(q.Push(background, nil, dq.ID("m")))
	id, err := q.Push(background, nil, dq.ID("m"))
	if id != "m" || !errors.Is(err, dq.ErrDuplicate) {
		t.Error(id, err)
	}
}

func TestManyPushesSayWhatBecameOfEach(t *testing.T) {
	s := newServer(t)
	q := s.queue("q")
	must(q.Push(background, nil, dq.ID("live")))
	must(q.Push(background, nil, dq.ID("dead")))
	s.ask("DQ.BURY", "q", "dead")
	pushed := must(q.PushMany(background, [][]byte{nil, nil, []byte("x")}, dq.IDs("live", "dead", "new")))
	if !errors.Is(pushed[0].Err, dq.ErrDuplicate) || !errors.Is(pushed[1].Err, dq.ErrDeadID) || pushed[2].Err != nil {
		t.Error(pushed)
	}
	for _, ids := range [][]dq.PushOption{{dq.IDs("a", "b")}, {dq.ID("a"), dq.ID("b")}} {
		if _, err := q.Push(background, nil, ids...); err == nil {
			t.Error("a message has one id")
		}
	}
	if _, err := q.Follow(background, "batch", nil, dq.ID("a"), dq.ID("b")); err == nil {
		t.Error("a message has one id")
	}
	if _, err := q.PushMany(background, [][]byte{nil, nil}, dq.ID("a")); err == nil {
		t.Error("two messages have two ids")
	}
	made := must(s.queue("r").PushMany(background, [][]byte{nil, nil}))
	if len(made) != 2 || made[0].ID == "" || made[0].ID == made[1].ID {
		t.Error(made)
	}
}

func TestRefusalsMatchTheirErrors(t *testing.T) {
	s := newServer(t)
	s.ask("DQ.CREATE", "full", "MAXLEN", 1)
	s.ask("DQ.PUSH", "full", "x")
	s.ask("DQ.CREATE", "small", "MAXPAYLOAD", 1)
	s.ask("DQ.PUSH", "dead", "x", "ID", "m")
	s.ask("DQ.BURY", "dead", "m")
	for queue, wanted := range map[string]error{"full": dq.ErrQueueFull, "small": dq.ErrTooLarge, "dead": dq.ErrDeadID} {
		_, err := s.queue(queue).Push(background, []byte("xy"), dq.ID("m"))
		var answered dq.ServerError
		if !errors.Is(err, wanted) || !errors.As(err, &answered) {
			t.Error(queue, err)
		}
	}
	s.ask("CONFIG", "SET", "maxmemory", 1)
	if _, err := s.queue("q").Push(background, nil); !errors.Is(err, dq.ErrOutOfMemory) {
		t.Error(err)
	}
	missing := dq.ServerError("ERR unknown command 'DQ.PUSH', with args beginning with: 'q'")
	if !errors.Is(missing, dq.ErrNoModule) ||
		!strings.HasPrefix(missing.Error(), "the server has not loaded the module dq: ERR") ||
		errors.Is(dq.ServerError("ERR unknown command 'HELLO'"), dq.ErrNoModule) {
		t.Error(missing)
	}
	closed := dq.ServerError("QUEUECLOSED x")
	if !errors.Is(closed, dq.ErrQueueClosed) || errors.Is(closed, dq.ErrQueueFull) {
		t.Error("a code matches its error only")
	}
}

// losing carries commands out, and loses the replies to the first ones.
func losing(do dq.Doer, replies int) dq.DoFunc {
	return func(ctx context.Context, args ...any) (any, error) {
		reply, err := do.Do(ctx, args...)
		if replies--; replies >= 0 {
			return nil, io.ErrUnexpectedEOF
		}
		return reply, err
	}
}

func TestAPushWhoseReplyWasLostIsMadeOnce(t *testing.T) {
	s := newServer(t)
	id := must(dq.NewClient(losing(s.do, 2)).Queue("q").Push(background, []byte("x")))
	many := must(dq.NewClient(losing(s.do, 2)).Queue("q").PushMany(background, [][]byte{nil, nil}))
	info := must(s.queue("q").Info(background))
	if info.Pushed != 3 || info.Ready != 3 || many[0].Err != nil || many[1].Err != nil {
		t.Errorf("%+v %v", info, many)
	}
	if m := must(s.queue("q").Get(background, id)); string(m.Payload) != "x" {
		t.Errorf("%+v", m)
	}
}

func TestRepeatingPushesCanBeSwitchedOff(t *testing.T) {
	s := newServer(t)
	_, err := dq.NewClient(losing(s.do, 1), dq.PushTimeout(0)).Queue("q").Push(background, nil)
	if !errors.Is(err, dq.ErrConnectionLost) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestWhatCouldNotBeSentSaysWhereAndWhy(t *testing.T) {
	silent := must(net.Listen("tcp", "127.0.0.1:0"))
	defer silent.Close()
	check := func(name string, err error, wanted ...error) {
		for _, want := range append(wanted, dq.ErrConnectionLost) {
			if !errors.Is(err, want) || !strings.Contains(err.Error(), "127.0.0.1:") {
				t.Errorf("%s: %v, and not %v", name, err, want)
			}
		}
	}
	away := must(redigo.Open("redis://127.0.0.1:1"))
	mute := must(redigo.Open("redis://" + silent.Addr().String()))
	_, err := dq.NewClient(away, dq.PushTimeout(time.Second)).Queue("q").Push(background, nil)
	check("PushTimeout", err, context.DeadlineExceeded, syscall.ECONNREFUSED)
	_, err = dq.NewClient(mute, dq.PushTimeout(time.Millisecond)).Queue("q").PushMany(background, [][]byte{nil})
	check("PushTimeout without an answer", err, context.DeadlineExceeded)
	for name, call := range map[string]func(context.Context, *dq.Queue) error{
		"Push":  func(ctx context.Context, q *dq.Queue) error { _, err := q.Push(ctx, nil); return err },
		"Await": func(ctx context.Context, q *dq.Queue) error { _, err := q.Await(ctx, "m"); return err },
		"Info":  func(ctx context.Context, q *dq.Queue) error { _, err := q.Info(ctx); return err },
	} {
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		attempts := 0
		q := dq.NewClient(dq.DoFunc(func(ctx context.Context, args ...any) (any, error) {
			reply, err := away.Do(ctx, args...)
			if attempts++; attempts == 2 || name == "Info" {
				cancel()
			}
			return reply, err
		})).Queue("q")
		check(name, call(ctx, q), context.Canceled, syscall.ECONNREFUSED)
	}
}

func TestACallWhoseContextHasEndedKeepsNoConnection(t *testing.T) {
	s := newServer(t)
	pool := &redis.Pool{MaxActive: 1, MaxIdle: 1, Dial: func() (redis.Conn, error) { return redis.DialURL(s.url()) }}
	defer pool.Close()
	q := dq.NewClient(redigo.New(pool, 0)).Queue("q")
	must(q.Push(background, nil))
	ended, cancel := context.WithCancel(background)
	cancel()
	if _, err := q.Push(ended, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := must(q.Len(background, "")); n != 1 {
		t.Error(n)
	}
}

func TestACallEndsWithItsContextAlthoughTheServerNeverGreets(t *testing.T) {
	silent := must(net.Listen("tcp", "127.0.0.1:0"))
	defer silent.Close()
	url := "redis://" + silent.Addr().String()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.DialURL(url) }}
	for name, client := range map[string]*redigo.Client{"opened": must(redigo.Open(url)), "given": redigo.New(pool, 0)} {
		ctx, cancel := context.WithTimeout(background, 200*time.Millisecond)
		defer cancel()
		begun := time.Now()
		_, err := dq.NewClient(client).Queue("q").Len(ctx, "")
		<-ctx.Done() // The deadline of the socket may come a moment before that of the context.
		_, dialed := client.Dial(ctx)
		if passed := time.Since(begun); err == nil || dialed == nil || passed > 5*time.Second {
			t.Error(name, err, dialed, passed)
		}
	}
}

func TestTimesAreNotNegative(t *testing.T) {
	s := newServer(t)
	must(s.queue("q").Push(background, nil, dq.ID("m")))
	for name, call := range map[string]func() error{
		"PushTimeout": func() error { _, err := s.queue("q", dq.PushTimeout(-1)).Push(background, nil); return err },
		"DELAY":       func() error { _, err := s.queue("q").Push(background, nil, dq.Delay(-1)); return err },
		"TTL":         func() error { _, err := s.queue("q").Push(background, nil, dq.TTL(-1)); return err },
		"AT":          func() error { _, err := s.queue("q").Push(background, nil, dq.At(time.Time{})); return err },
		"FOR":         func() error { return s.queue("q").Pause(background, dq.FlowOut, -1) },
		"IDS":         func() error { _, err := s.queue("q").Redrive(background, dq.IDs()); return err },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), name) {
			t.Error(name, err)
		}
	}
	if n := must(s.queue("q").Len(background, "ready")); n != 1 {
		t.Error(n)
	}
}

func TestMessagesAreChangedAndLookedAt(t *testing.T) {
	s := newServer(t)
	q := s.queue("q", dq.Prefix("app:"))
	for _, id := range []string{"a", "b", "c"} {
		must(q.Push(background, []byte(id), dq.ID(id), dq.Delay(time.Hour)))
	}
	if s.ask("DQ.LEN", "app:q") != int64(3) {
		t.Error("the prefix is not applied")
	}
	if !must(q.Reschedule(background, "a", dq.Delay(0), dq.Priority(5))) ||
		must(q.Reschedule(background, "none", dq.Priority(1))) {
		t.Error("reschedule")
	}
	if n := must(q.Promote(background, dq.Count(1))); n != 1 {
		t.Error("promote", n)
	}
	if ready := must(q.Peek(background, "ready", 5)); len(ready) != 2 || ready[0].ID != "a" || ready[0].Priority != 5 {
		t.Errorf("%+v", ready)
	}
	if states := must(q.Cancel(background, "b", "none")); !reflect.DeepEqual(states, []string{"ready", ""}) {
		t.Error(states)
	}
	s.ask("DQ.BURY", "app:q", "c", "ERROR", "broken")
	if m := must(q.Get(background, "c")); m.State != "dead" || m.Error != "broken" || m.Reason == "" || m.Died.IsZero() {
		t.Errorf("%+v", m)
	}
	if n := must(q.Redrive(background, dq.IDs("c", "none"), dq.Delay(time.Hour))); n != 1 {
		t.Error("redrive", n)
	}
	if err := q.Pause(background, dq.FlowOut, time.Hour); err != nil {
		t.Error(err)
	}
	info := must(q.Info(background))
	if !info.Paused || info.Delayed != 1 || info.Ready != 1 || info.Lease != 30*time.Second {
		t.Errorf("%+v", info)
	}
	if err := q.Resume(background, dq.FlowOut); err != nil {
		t.Error(err)
	}
	said := must(q.Schedule(background, "daily", nil, dq.Cron("0 3 * * *", "Europe/Berlin"), dq.Times(3),
		dq.Header("a", "b")))
	if said != "created" {
		t.Error(said)
	}
	said = must(q.Schedule(background, "often", nil, dq.Every(time.Hour), dq.Offset(time.Minute),
		dq.Until(time.Now().AddDate(1, 0, 0))))
	if said != "created" {
		t.Error(said)
	}
	if n := must(q.Len(background, "")); n != 4 {
		t.Error("len", n)
	}
	if n := must(q.Purge(background, dq.States("ready"), dq.Count(10))); n != 1 {
		t.Error("purge", n)
	}
	if n := must(q.Purge(background, dq.Recurring())); n != 3 {
		t.Error("purge", n)
	}
}

func TestMessagesAreChosenByAgeByReasonOrByDueTime(t *testing.T) {
	s := newServer(t)
	q := s.queue("q")
	must(q.Push(background, nil, dq.ID("m"), dq.Group("g"), dq.Delay(time.Minute)))
	now := time.Now()
	if past, soon := must(q.Promote(background, dq.Until(now))),
		must(q.Promote(background, dq.Until(now.Add(time.Hour)))); past != 0 || soon != 1 {
		t.Error("promote", past, soon)
	}
	if n := must(q.Purge(background, dq.Older(time.Hour), dq.States("ready"))); n != 0 {
		t.Error("purge", n)
	}
	s.ask("DQ.BURY", "q", "m")
	if late, other := must(q.Redrive(background, dq.Older(time.Hour))),
		must(q.Redrive(background, dq.Reason("expired"))); late != 0 || other != 0 {
		t.Error("redrive", late, other)
	}
	if n := must(q.Redrive(background, dq.Count(5), dq.Reason("rejected"), dq.Older(0))); n != 1 {
		t.Error("redrive", n)
	}
	if other, own := must(q.Purge(background, dq.Group("h"))),
		must(q.Purge(background, dq.Group("g"), dq.Older(0))); other != 0 || own != 1 {
		t.Error("purge", other, own)
	}
}

func TestAClosedQueueRefusesPushesUntilItIsResumed(t *testing.T) {
	s := newServer(t)
	q := s.queue("q")
	s.ask("DQ.CREATE", "q", "DELAY", 5000)
	if err := q.Pause(background, dq.FlowIn, time.Hour); err != nil {
		t.Error(err)
	}
	if info := must(q.Info(background)); info.Paused || !info.Closed || info.Delay != 5*time.Second {
		t.Errorf("%+v", info)
	}
	for _, resumed := range []dq.Flow{dq.FlowOut, dq.FlowAll} {
		if _, err := q.Push(background, nil); !errors.Is(err, dq.ErrQueueClosed) {
			t.Error(err)
		}
		if err := q.Resume(background, resumed); err != nil {
			t.Error(err)
		}
	}
	must(q.Push(background, nil))
}

func TestAGroupIsLookedAtPausedAndResumed(t *testing.T) {
	s := newServer(t)
	q := s.queue("q")
	must(q.Push(background, nil, dq.Group("g")))
	must(q.Push(background, nil))
	if own, all := must(q.Len(background, "ready", dq.Group("g"))), must(q.Len(background, "")); own != 1 || all != 2 {
		t.Error(own, all)
	}
	if found := must(q.Peek(background, "ready", 5, dq.Group("g"))); len(found) != 1 || found[0].Group != "g" {
		t.Error(found)
	}
	blocked := func() int64 { return must(q.Info(background)).Fields["blocked"].(int64) }
	if err := q.PauseGroup(background, "g", time.Hour); err != nil || blocked() != 1 {
		t.Error(err, blocked())
	}
	if err := q.Resume(background, dq.FlowAll); err != nil || blocked() != 1 {
		t.Error(err, blocked())
	}
	if err := q.ResumeGroup(background, "g"); err != nil || blocked() != 0 {
		t.Error(err, blocked())
	}
}

func TestAMessageFollowsWhenAllOfABatchHaveEnded(t *testing.T) {
	s := newServer(t)
	q := s.queue("q", dq.OnPush(func(_ context.Context, _ string, headers map[string]string) { headers["on"] = "push" }))
	must(q.PushMany(background, [][]byte{nil, nil}, dq.IDs("a", "b"), dq.Batch("pages")))
	left := must(q.Follow(background, "pages", []byte("index"), dq.ID("after"), dq.Delay(time.Hour), dq.Priority(3),
		dq.Retries(1), dq.Lease(7*time.Second), dq.Group("g"), dq.Header("h", "1")))
	batch := must(q.BatchInfo(background, "pages"))
	if left != 2 || batch.Left != 2 || !batch.Closed || batch.Created.IsZero() || string(batch.Then) != "index" ||
		batch.ThenID != "after" {
		t.Errorf("%d %+v", left, batch)
	}
	must(q.Cancel(background, "a", "b"))
	m := must(q.Get(background, "after"))
	if string(m.Payload) != "index" || m.State != "delayed" || m.Priority != 3 || m.Retries != 1 ||
		m.Lease != 7*time.Second || m.Group != "g" || m.Headers["h"] != "1" || m.Headers["on"] != "push" ||
		m.Headers["dq-batch-cancelled"] != "2" {
		t.Errorf("%+v", m)
	}
}

func TestABatchIsCancelled(t *testing.T) {
	s := newServer(t)
	q := s.queue("q")
	must(q.PushMany(background, [][]byte{nil, nil}, dq.Batch("pages")))
	if n := must(q.CancelBatch(background, "pages")); n != 2 {
		t.Error(n)
	}
	if _, err := q.BatchInfo(background, "pages"); err != dq.ErrNotFound {
		t.Error(err)
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	s := newServer(t)
	if _, err := s.queue("none").Info(background); err != dq.ErrNotFound {
		t.Error(err)
	}
	if _, err := s.queue("none").Get(background, "m"); err != dq.ErrNotFound {
		t.Error(err)
	}
	if _, err := s.queue("none").Await(background, "m"); err != dq.ErrNotFound {
		t.Error(err)
	}
}

func TestACallerWaitsForTheResult(t *testing.T) {
	s := newServer(t)
	mux := dq.NewMux()
	mux.HandleFunc("sums", func(_ context.Context, m *dq.Message) error {
		if string(m.Payload) != "2+2" {
			return dq.ErrReject
		}
		m.SetResult([]byte("4"))
		return nil
	})
	s.work(s.do, mux)
	ctx, cancel := context.WithTimeout(background, 20*time.Second)
	defer cancel()
	if result := must(s.queue("sums").PushAndWait(ctx, []byte("2+2"))); string(result) != "4" {
		t.Error(string(result))
	}
	_, err := s.queue("sums").PushAndWait(ctx, []byte("two and two"))
	var failed *dq.FailedError
	if !errors.As(err, &failed) || failed.Reason != "rejected" {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(background, 100*time.Millisecond)
	defer cancel()
	if _, err := s.queue("nobody").PushAndWait(short, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestAQueueIsDeclaredCreatedAndAltered(t *testing.T) {
	s := newServer(t)
	q := s.queue("q")
	if err := q.Declare(background, dq.Backoff(time.Second, time.Minute, 20), dq.GroupRate(5, time.Second),
		dq.Forward("STREAM", "due", "TRIM", "9")); err != nil {
		t.Fatal(err)
	}
	fields := must(q.Info(background)).Fields
	for name, want := range map[string]string{"backoff-base": "1000", "backoff-max": "60000", "backoff-jitter": "20",
		"grouprate": "5", "grouprate-period": "1000", "forward": "STREAM due TRIM 9"} {
		got := fmt.Sprint(fields[name])
		if bytes, ok := fields[name].([]byte); ok {
			got = string(bytes)
		}
		if got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	var refused dq.ServerError
	if err := q.Create(background, dq.MaxLen(1)); !errors.As(err, &refused) {
		t.Error(err)
	}
	if err := s.queue("none").Alter(background, dq.MaxLen(1)); !errors.As(err, &refused) {
		t.Error(err)
	}
	if err := q.Alter(background, dq.MaxLen(1)); err != nil {
		t.Error(err)
	}
}
