package redigo

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/gomodule/redigo/redis"
)

// watched is a connection of a pool, with its socket: a server or a load balancer may have closed it while it was idle.
type watched struct {
	redis.ConnWithTimeout
	socket net.Conn
}

// accepted returns a new connection after the server has answered on it. A server that has too many clients accepts a
// connection, and what it says then is no answer to a command.
func accepted(opened redis.Conn, socket net.Conn) (redis.Conn, error) {
	_, err := opened.Do("HELLO") // Every user has the right to it. A server that does not know it answers, too.
	var refused redis.Error
	if err != nil && (!errors.As(err, &refused) || strings.Contains(err.Error(), "max number of clients")) {
		opened.Close()
		return nil, err
	}
	timed, ok := opened.(redis.ConnWithTimeout)
	if !ok || socket == nil {
		return opened, nil
	}
	return &watched{timed, socket}, nil
}

// isClosedByServer returns whether a connection was closed by the other side.
func isClosedByServer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// isHarmless returns whether a command may be carried out twice.
func isHarmless(name any) bool {
	switch name {
	case "DQ.GET", "DQ.PEEK", "DQ.LEN", "DQ.INFO", "DQ.BATCHINFO", "DQ.AWAIT", "DQ.EXTEND":
		return true
	}
	return false
}
