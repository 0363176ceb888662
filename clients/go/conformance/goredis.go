//go:build ignore

package main

import (
	"dq"
	"dq/goredis"

	"github.com/redis/go-redis/v9"
)

// open returns what the programs send their commands through if they are built with this file.
func open(url string) (dq.Doer, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return goredis.New(options), nil
}
