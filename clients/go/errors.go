package dq

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"
)

// What the server refuses. They match a [ServerError] by errors.Is.
var (
	// ErrQueueFull means that the queue has no room under its MAXLEN.
	ErrQueueFull error = &refusedError{"QUEUEFULL", "the queue is full"}
	// ErrDeadID means that the queue holds a dead message of this id: replace, redrive or cancel it first.
	ErrDeadID error = &refusedError{"DEADID", "the queue holds a dead message of this id"}
	// ErrTooLarge means that the payload is larger than the MAXPAYLOAD of the queue.
	ErrTooLarge error = &refusedError{"TOOLARGE", "the payload is too large"}
	// ErrQueueClosed means that the queue is closed for producers.
	ErrQueueClosed error = &refusedError{"QUEUECLOSED", "the queue is closed"}
	// ErrOutOfMemory means that the server has reached its maxmemory.
	ErrOutOfMemory error = &refusedError{"OOM", "the server is out of memory"}
	// ErrNoModule means that the server does not know the commands of dq.
	ErrNoModule error = &refusedError{"NOMODULE", "the server has not loaded the module dq"}
)

var (
	// ErrConnectionLost means that the server could not be reached. A command that was sent may have been carried out.
	ErrConnectionLost = errors.New("dq: the connection to the server is lost")
	// ErrDuplicate means that the queue holds a message of this id already.
	ErrDuplicate = errors.New("dq: the queue holds a message of this id")
	// ErrNotFound means that there is no such message or queue: it was never there, was removed, or was not kept.
	ErrNotFound = errors.New("dq: not found")
	// ErrReject is returned, or wrapped, by a handler whose message can never succeed. The message is dead at once.
	ErrReject = errors.New("dq: rejected")
	// ErrLost is matched by the [Cause] of a context whose message was taken from its handler: see [LostError].
	ErrLost = errors.New("dq: the message is lost")
	// ErrTimeLimit is the [Cause] of a context whose handler has reached its [TimeLimit]. The message has failed.
	ErrTimeLimit = errors.New("dq: the handler has reached its time limit")
	// ErrResultTooLarge is the error of a [Done] event, and of a caller that waits for the result, if a message is
	// completed but its result is larger than what the server keeps.
	ErrResultTooLarge = errors.New(
		"dq: the message is completed, but its result is larger than 65536 bytes and is not kept")
)

// refusedError is what a [ServerError] with a code matches.
type refusedError struct{ code, text string }

func (e *refusedError) Error() string { return "dq: " + e.text }

// ServerError is the text of an error that the server answered, such as "QUEUEFULL queue holds 5 messages (MAXLEN)".
type ServerError string

var noModule = regexp.MustCompile("(?i)^ERR unknown command ['`]?dq\\.")

// Error returns the text, preceded by a sentence that explains it if the server has not loaded the module, or is a node
// of a cluster that does not hold the queue.
func (e ServerError) Error() string {
	moved := strings.HasPrefix(string(e), "MOVED ")
	if _, address, hasAddress := strings.Cut(strings.TrimPrefix(string(e), "MOVED "), " "); moved && hasAddress {
		return "the server is a node of a cluster, and another node holds the queue: use its address, " + address +
			", or a client of the whole cluster: " + string(e)
	}
	if noModule.MatchString(string(e)) {
		text, _, _ := strings.Cut(string(e), ", with args") // Behind that, the server quotes the payload.
		return "the server has not loaded the module dq: " + text
	}
	return string(e)
}

// Code returns the first word, or NOMODULE for [ErrNoModule].
func (e ServerError) Code() string {
	if noModule.MatchString(string(e)) {
		return "NOMODULE"
	}
	code, _, _ := strings.Cut(string(e), " ")
	return code
}

// Is matches the error that belongs to the code.
func (e ServerError) Is(target error) bool {
	known, ok := target.(*refusedError)
	return ok && known.code == e.Code()
}

// LostError is the [Cause] of a context whose message was taken from its handler. What the handler returns is
// discarded.
type LostError struct {
	// Reason is "cancelled", "replaced", "buried", "purged" or "released" after a command of another client, "lease" if
	// the lease is over, and "stopping" if the worker stops and gives the message back.
	Reason string
}

// Error returns the reason in a sentence.
func (e *LostError) Error() string { return ErrLost.Error() + ": " + e.Reason }

// Is matches ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// FailedError is returned by [Queue.PushAndWait] and [Queue.Await] for a message that is dead.
type FailedError struct {
	ID string
	// Reason is "rejected", "expired" or "retries".
	Reason string
	// Text is the last error of its handlers.
	Text string
}

// Error returns the last error of the message.
func (e *FailedError) Error() string {
	return fmt.Sprintf("dq: message %s is dead (%s): %s", e.ID, e.Reason, e.Text)
}

// longestDelay is the longest delay that the server accepts.
const longestDelay = 4398046511103 * time.Millisecond

// RetryAfter is returned by a handler to have its message delivered again after this time. The attempt counts. A time
// that is negative, or longer than 139 years, makes an error like any other, so that the backoff of the queue applies.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = errors.New("dq: retry")
	}
	if d < 0 || d > longestDelay {
		return fmt.Errorf("dq: RetryAfter(%v) is not a time from 0 to %d ms: %w", d, ms(longestDelay), err)
	}
	return &retryError{after: d, err: err}
}

type retryError struct {
	after time.Duration
	err   error
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

type connectionError struct{ err error }

func (e *connectionError) Error() string        { return ErrConnectionLost.Error() + ": " + e.err.Error() }
func (e *connectionError) Is(target error) bool { return target == ErrConnectionLost }
func (e *connectionError) Unwrap() error        { return e.err }

// endedError is the error of a context that ended before a command succeeded, with the error of the last attempt.
type endedError struct{ ended, cause error }

func (e *endedError) Error() string        { return e.cause.Error() + " (" + e.ended.Error() + ")" }
func (e *endedError) Is(target error) bool { return target == e.ended }
func (e *endedError) Unwrap() error        { return e.cause }

// translate returns what an error of a Doer means: a ServerError, or that the connection is lost.
func translate(err error) error {
	var lost *connectionError
	if err == nil || isServerError(err) || errors.As(err, &lost) {
		return err
	}
	var answered interface {
		error
		RedisError()
	}
	if errors.As(err, &answered) {
		return ServerError(answered.Error())
	}
	return &connectionError{err}
}

func isServerError(err error) bool { return codeOf(err) != "" }

// codeOf returns the code of an error that the server answered, and "" for any other.
func codeOf(err error) string {
	var answered ServerError
	errors.As(err, &answered)
	return answered.Code()
}

// NotSent marks an error of a [Doer]: no connection could be opened, so the command has certainly not been carried out.
func NotSent(err error) error {
	if err == nil {
		return nil
	}
	return &notSentError{err}
}

type notSentError struct{ err error }

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

// mayHaveRun returns whether a command that failed may have been carried out.
func mayHaveRun(err error) bool {
	var notSent *notSentError
	var network *net.OpError
	if err == nil || isServerError(err) || errors.As(err, &notSent) {
		return false
	}
	return !errors.As(err, &network) || network.Op != "dial"
}

// A server of a cluster adds "+ cluster connections".
const tooManyClients = "ERR max number of clients"

// isNotNow returns whether the server has not carried out a command, and may do so later.
func isNotNow(err error) bool {
	switch codeOf(err) {
	case "LOADING", "BUSY", "READONLY", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "UNBLOCKED":
		return true
	case "ERR": // It is the first answer on a connection, whatever was sent there.
		return strings.Contains(err.Error(), tooManyClients)
	}
	return false
}

// isTransient returns whether the same command may succeed later, on this server or on the one that takes over. For a
// worker, a password that is refused may be about to change.
func isTransient(err error) bool {
	if !isServerError(err) {
		return err != nil
	}
	switch codeOf(err) {
	case "MOVED", "ASK", "NOAUTH", "WRONGPASS":
		return true
	}
	return isNotNow(err)
}
