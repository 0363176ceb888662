//go:build go1.20

package dq

import "context"

// withCause returns a context that is cancelled with a cause.
func withCause(parent context.Context) (context.Context, func(error)) {
	ctx, cancel := context.WithCancelCause(parent)
	return ctx, func(err error) { cancel(err) }
}

// Cause returns why the context of a handler has ended: a [*LostError], or [ErrTimeLimit]. It is nil while the context
// has not ended. It is context.Cause.
func Cause(ctx context.Context) error { return context.Cause(ctx) }
