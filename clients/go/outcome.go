package dq

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

const (
	// The server keeps this much of an error, and this much of a result.
	errorBytes  = 1024
	resultBytes = 65536
	// How much of that a text may take if a stack follows it.
	panicBytes = 512
)

// outcome is what the end of a handler means to the server: a command, and what follows the receipt in it.
type outcome struct {
	kind    EventKind
	command string
	words   []any
	err     error
}

var (
	acked     = outcome{kind: Done, command: "DQ.ACK"}
	givenBack = outcome{kind: Lost, command: "DQ.NACK", words: []any{"NOCOUNT"}}
)

// panicError is what a handler panicked with.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// successOf returns the outcome of a handler that returned no error.
func successOf(m *Message) outcome {
	switch {
	case len(m.result) == 0:
		return acked
	case len(m.result) > resultBytes: // A caller sees by an empty result that it is not kept.
		return outcome{Done, "DQ.COMPLETE", []any{"RESULT", ""}, ErrResultTooLarge}
	}
	return outcome{Done, "DQ.COMPLETE", []any{"RESULT", m.result}, nil}
}

// failureOf returns the outcome of a handler that returned an error.
func failureOf(err error) outcome {
	var retry *retryError
	switch {
	case errors.Is(err, ErrReject):
		return outcome{Rejected, "DQ.NACK", []any{"DEAD", "ERROR", cut(err.Error(), errorBytes)}, err}
	case errors.As(err, &retry):
		return outcome{Retried, "DQ.NACK", []any{"ERROR", cut(err.Error(), errorBytes), "DELAY", ms(retry.after)}, err}
	}
	return outcome{Failed, "DQ.NACK", []any{"ERROR", describe(err)}, err}
}

// describe returns the type and the text of an error; of a panic its text, and the stack from where it began.
func describe(err error) string {
	var panicked *panicError
	if !errors.As(err, &panicked) {
		return cut(fmt.Sprintf("%T: %s", err, err), errorBytes)
	}
	return cut(cut(err.Error(), panicBytes)+"\n"+origin(string(panicked.stack)), errorBytes)
}

// cut shortens a text to a number of bytes, between characters.
func cut(s string, bytes int) string {
	if len(s) <= bytes {
		return s
	}
	for bytes > 0 && !utf8.RuneStart(s[bytes]) {
		bytes--
	}
	return s[:bytes]
}

// earlier returns the earlier of two instants, where the zero time stands for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
