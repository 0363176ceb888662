package goredis

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"dq"

	"github.com/redis/go-redis/v9"
)

// Wrap returns what sends commands with the options of a client that you have, which may be a client of a cluster.
func Wrap(client redis.UniversalClient) (dq.Dialer, error) {
	switch client := client.(type) {
	case *redis.Client:
		return New(client.Options()), nil
	case *redis.ClusterClient:
		return &Cluster{rdb: client, nodes: map[string]*Client{}}, nil
	}
	return nil, fmt.Errorf("dq: a client of go-redis of the type %T has no connections for a worker", client)
}

// Cluster sends commands through a client of a cluster. The connections of workers lead to the node that holds their queue.
type Cluster struct {
	rdb   *redis.ClusterClient
	mu    sync.Mutex
	nodes map[string]*Client
}

var _ dq.KeyDialer = (*Cluster)(nil)

// DB returns 0: a cluster has no other database.
func (c *Cluster) DB() int { return 0 }

// Do sends a command to the node that holds its key, which is its first argument.
func (c *Cluster) Do(ctx context.Context, args ...any) (any, error) {
	return result(c.rdb.Do(ctx, args...))
}

// Dial opens a connection to some node.
func (c *Cluster) Dial(ctx context.Context) (dq.Conn, error) { return c.DialKey(ctx, "") }

// DialKey opens a connection to the node that holds a key.
func (c *Cluster) DialKey(ctx context.Context, key string) (dq.Conn, error) {
	node, err := c.node(ctx, key)
	if err != nil {
		return nil, dq.NotSent(err)
	}
	return node.Dial(ctx)
}

// Subscribe listens to the channel of a queue at the node that holds it.
func (c *Cluster) Subscribe(ctx context.Context, channel string) (dq.Subscription, error) {
	_, key, _ := strings.Cut(channel, "__:")
	node, err := c.node(ctx, key)
	if err != nil {
		return nil, err
	}
	return node.Subscribe(ctx, channel)
}

// Close closes the connections that were opened for subscriptions. The client that was given stays open.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, node := range c.nodes {
		node.Close()
	}
	c.nodes = map[string]*Client{}
	return nil
}

// node returns the client of the node that holds a key. It is asked for whenever a connection is opened, after a failover too, so
// the client of the cluster looks at its nodes again.
func (c *Cluster) node(ctx context.Context, key string) (*Client, error) {
	c.rdb.ReloadState(ctx)
	master, err := c.rdb.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	options := master.Options()
	c.mu.Lock()
	defer c.mu.Unlock()
	node := c.nodes[options.Addr]
	if node == nil {
		node = New(options)
		c.nodes[options.Addr] = node
	}
	return node, nil
}
