package dq

import (
	"math/rand"
	"strconv"
	"time"
)

// Replies as the libraries hand them out: text is a string or []byte, a map is one of RESP3 or a flat array of RESP2.

func text(reply any) string {
	switch v := reply.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func raw(reply any) []byte {
	switch v := reply.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}

func integer(reply any) int64 {
	switch v := reply.(type) {
	case int64:
		return v
	case int:
		return int64(v)
	}
	return 0
}

// refusal returns the error that stands in the place of a reply, or nil.
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

// each calls a function for each field of a map.
func each(reply any, do func(name string, value any)) {
	switch v := reply.(type) {
	case map[any]any:
		for name, value := range v {
			do(text(name), value)
		}
	case []any:
		for i := 0; i+1 < len(v); i += 2 {
			do(text(v[i]), v[i+1])
		}
	}
}

// fieldsOf returns the fields of a map.
func fieldsOf(reply any) map[string]any {
	fields := map[string]any{}
	each(reply, func(name string, value any) { fields[name] = value })
	return fields
}

func texts(reply any) map[string]string {
	found := make(map[string]string)
	each(reply, func(name string, value any) { found[name] = text(value) })
	return found
}

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

func (b *backoff) reset() { b.pause = 0 }
