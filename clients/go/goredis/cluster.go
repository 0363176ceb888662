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
		return newClient(client.Options(), client), nil
	case *redis.ClusterClient:
		return &Cluster{rdb: client, nodes: map[string]*Client{}}, nil
	}
	return nil, fmt.Errorf("dq: a client of go-redis of the type %T has no connections for a worker", client)
}

// Cluster sends commands to the nodes of a cluster, as a client of the cluster knows them, on connections of its own.
type Cluster struct {
	rdb   *redis.ClusterClient
	mu    sync.Mutex
	nodes map[string]*Client
}

var _ dq.KeyDialer = (*Cluster)(nil)

// DB returns 0: a cluster has no other database.
func (c *Cluster) DB() int { return 0 }

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

// Close closes the connections to the nodes. The client that was given stays open.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, node := range c.nodes {
		node.Close()
	}
	c.nodes = map[string]*Client{}
	return nil
}

// node returns the client of the node that holds a key. It is asked for whenever a connection is opened, after a
// failover too, so the client of the cluster looks at its nodes again.
func (c *Cluster) node(ctx context.Context, key string) (*Client, error) {
	c.rdb.ReloadState(ctx)
	return c.holder(ctx, key)
}

// holder returns the client of the node that holds a key, as far as the client of the cluster knows.
func (c *Cluster) holder(ctx context.Context, key string) (*Client, error) {
	master, err := c.rdb.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	return c.at(master.Options().Addr, *master.Options()), nil
}

// at returns the client of the node at an address, with the options of another one.
func (c *Cluster) at(address string, options redis.Options) *Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	node := c.nodes[address]
	if node == nil {
		options.Addr = address
		node = New(&options)
		c.nodes[address] = node
	}
	return node
}
