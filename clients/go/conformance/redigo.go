//go:build ignore

package main

import (
	"dq"
	"dq/redigo"
)

// open returns what the programs send their commands through if they are built with this file.
func open(url string) (dq.Doer, error) {
	return redigo.Open(url)
}
