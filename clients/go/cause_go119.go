//go:build !go1.20

package dq

import (
	"context"
	"sync/atomic"
)

type causeKey struct{}

// withCause returns a context that is cancelled with a cause.
func withCause(parent context.Context) (context.Context, func(error)) {
	cause := new(atomic.Value)
	ctx, cancel := context.WithCancel(context.WithValue(parent, causeKey{}, cause))
	return ctx, func(err error) {
		if err != nil {
			cause.CompareAndSwap(nil, &err)
		}
		cancel()
	}
}

// Cause returns why the context of a handler has ended: a [*LostError], or [ErrTimeLimit]. It is nil while the context
// has not ended. With Go 1.20 and newer it is context.Cause.
func Cause(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if cause, ok := ctx.Value(causeKey{}).(*atomic.Value); ok {
		if err, ok := cause.Load().(*error); ok {
			return *err
		}
	}
	return ctx.Err()
}
