//go:build !unix

package redigo

import "net"

// isClosed is not known here: a command then fails, and is sent again if it may be.
func isClosed(net.Conn) bool { return false }
