package dq

import (
	"math/rand"
	"strconv"
	"time"
)

// Replies as the libraries return them: text is a string or []byte, a map is one of RESP3 or a flat array of RESP2.

func text(reply any) string {
	if n, ok := reply.(int64); ok {
		return strconv.FormatInt(n, 10)
	}
	return string(raw(reply))
}

func raw(reply any) []byte {
	if s, ok := reply.(string); ok {
		return []byte(s)
	}
	b, _ := reply.([]byte)
	return b
}

func integer(reply any) int64 {
	n, _ := reply.(int64)
	return n
}

// refusal returns the error that the server sent instead of a reply, or nil.
func refusal(reply any) error {
	if err, refused := reply.(error); refused {
		return ServerError(err.Error())
	}
	return nil
}

func list(reply any) []any {
	items, _ := reply.([]any)
	return items
}

// mapOf reads each field of a map.
func mapOf[T any](reply any, read func(value any) T) map[string]T {
	fields := map[string]T{}
	switch v := reply.(type) {
	case map[any]any:
		for name, value := range v {
			fields[text(name)] = read(value)
		}
	case []any:
		for i := 0; i+1 < len(v); i += 2 {
			fields[text(v[i])] = read(v[i+1])
		}
	}
	return fields
}

func fieldsOf(reply any) map[string]any { return mapOf(reply, func(value any) any { return value }) }

func texts(reply any) map[string]string { return mapOf(reply, text) }

// ms returns a duration in the unit of the server, rounded up, so that nothing is due too early. A negative one stays
// negative, so that the server refuses it.
func ms(d time.Duration) int64 {
	whole := int64(d / time.Millisecond)
	if rest := d % time.Millisecond; rest > 0 {
		whole++
	} else if rest < 0 {
		whole--
	}
	return whole
}

// unixMs returns a time in the unit of the server, rounded up.
func unixMs(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

func duration(reply any) time.Duration { return time.Duration(integer(reply)) * time.Millisecond }

func instant(reply any) time.Time {
	if at := integer(reply); at != 0 {
		return time.UnixMilli(at)
	}
	return time.Time{}
}

const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// backoff makes growing, jittered pauses between attempts to reach the server.
type backoff struct{ pause time.Duration }

func (b *backoff) next() time.Duration {
	if b.pause == 0 {
		b.pause = firstPause
	}
	pause := b.pause
	if b.pause *= 2; b.pause > longestPause {
		b.pause = longestPause
	}
	return pause/2 + time.Duration(rand.Int63n(int64(pause/2)))
}
