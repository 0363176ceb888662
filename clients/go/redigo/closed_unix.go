//go:build unix

package redigo

import (
	"crypto/tls"
	"net"
	"syscall"
)

// isClosed returns whether the other side has closed a socket on which nothing is expected. It does not wait.
func isClosed(socket net.Conn) bool {
	if secure, ok := socket.(*tls.Conn); ok {
		socket = secure.NetConn()
	}
	system, ok := socket.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := system.SyscallConn()
	if err != nil {
		return true
	}
	closed := false
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		closed = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
		return true
	})
	return closed || err != nil
}
