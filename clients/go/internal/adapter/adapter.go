// Package adapter has what the adapters to Redis clients share.
package adapter

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	// A subscription is pinged so often, and is dead if it hears nothing for the longer time.
	pingInterval = 8 * time.Second
	Silence      = 20 * time.Second
)

// Within runs what blocks, but not beyond the end of ctx. What has begun then goes on, unless it is broken off.
func Within(ctx context.Context, run func() (any, error), breakOff func()) (any, error) {
	if ctx.Done() == nil {
		return run()
	}
	type answer struct {
		reply any
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		reply, err := run()
		answers <- answer{reply, err}
	}()
	select {
	case a := <-answers:
		return a.reply, a.err
	case <-ctx.Done():
		breakOff()
		return nil, ctx.Err()
	}
}

// At returns an error with the address of the server.
func At(address string, err error) error {
	if err == nil || strings.Contains(err.Error(), address) {
		return err
	}
	return fmt.Errorf("%s: %w", address, err)
}

// Watch pings a subscription, so that its silent end is noticed. It is closed when a ping fails, when ctx ends, or by
// the function that is returned.
func Watch(ctx context.Context, ping, close func() error) context.CancelFunc {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close()
		ticker := time.NewTicker(pingInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if ping() != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return cancel
}
