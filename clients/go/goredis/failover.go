package goredis

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// The address in the options of a client that redis.NewFailoverClient has made.
	failoverAddr = "FailoverClient"
	// How often Sentinels are asked for the master if nothing reports a failover.
	askInterval = time.Second
	// How often they are asked nevertheless: the one that reports may be away.
	reportWait = 10 * time.Second
)

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// master dials the master that Sentinels name. When they name another one, it closes all connections to the one before,
// which may live on for seconds: what that accepts then is lost.
type master struct {
	dialer dialer        // of go-redis; asks a Sentinel each time
	rdb    *redis.Client // the client that was given, whose connections go-redis closes at a failover; or nil
	watch  sync.Once
	stop   context.CancelFunc
	ended  context.Context

	mu      sync.Mutex
	address string // of the master
	changes int    // of the address
	open    map[*masterConn]struct{}
}

func newMaster(dialer dialer, rdb *redis.Client) *master {
	ended, stop := context.WithCancel(context.Background())
	return &master{dialer: dialer, rdb: rdb, ended: ended, stop: stop, open: map[*masterConn]struct{}{}}
}

// masterConn is a connection to a master.
type masterConn struct {
	net.Conn
	master *master
}

// Close closes the connection.
func (c *masterConn) Close() error {
	c.master.mu.Lock()
	delete(c.master.open, c)
	c.master.mu.Unlock()
	return c.Conn.Close()
}

// masterSocket is a masterConn that go-redis can look at before it uses the connection again.
type masterSocket struct {
	*masterConn
	syscall.Conn
}

// dial opens a connection to the master.
func (m *master) dial(ctx context.Context, network, address string) (net.Conn, error) {
	m.watch.Do(func() { go m.follow() })
	for {
		m.mu.Lock()
		changes := m.changes
		m.mu.Unlock()
		conn, err := m.dialer(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if kept := m.keep(conn, changes); kept != nil {
			return kept, nil
		}
		conn.Close() // The master has changed meanwhile.
	}
}

// keep registers a connection that was dialed after so many changes of the master. It returns nil if there was one more
// since then.
func (m *master) keep(conn net.Conn, changes int) net.Conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changes != changes {
		return nil
	}
	m.leave(conn.RemoteAddr().String())
	kept := &masterConn{conn, m}
	m.open[kept] = struct{}{}
	if socket, ok := conn.(syscall.Conn); ok {
		return &masterSocket{kept, socket}
	}
	return kept
}

// leave closes the connections that lead to another server than the master. The lock is held.
func (m *master) leave(address string) {
	if m.address == address {
		return
	}
	m.address = address
	m.changes++
	for conn := range m.open {
		if conn.RemoteAddr().String() != address {
			delete(m.open, conn)
			conn.Conn.Close()
		}
	}
}

// follow looks for another master whenever there may be one, until the client is closed.
func (m *master) follow() {
	for m.ended.Err() == nil {
		begun := time.Now()
		if m.rdb != nil && errors.Is(m.untilReport(), redis.ErrClosed) {
			return
		}
		if conn, err := m.dial(m.ended, "tcp", failoverAddr); err == nil {
			conn.Close() // Its address was all that was wanted.
		}
		select {
		case <-time.After(askInterval - time.Since(begun)):
		case <-m.ended.Done():
		}
	}
}

// untilReport waits until go-redis closes a connection of the client that was given, as it does with all of them at a
// failover. The server answers nothing on that connection.
func (m *master) untilReport() error {
	patient := m.rdb.WithTimeout(reportWait)
	patient.Options().MaxRetries = 0 // The options are of this copy only.
	conn := patient.Conn()
	defer conn.Close()
	return conn.Process(m.ended, redis.NewCmd(m.ended, "CLIENT", "REPLY", "OFF"))
}

// close ends the watch.
func (m *master) close() { m.stop() }
