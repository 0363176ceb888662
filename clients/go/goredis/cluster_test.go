package goredis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dq"

	"github.com/redis/go-redis/v9"
)

// found returns what an environment variable names, or what a script prints.
func found(t *testing.T, name string, script ...string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	printed, err := exec.Command("../../../scripts/"+script[0], script[1:]...).Output()
	if err != nil {
		t.Fatalf("set %s, or see why scripts/%s fails: %v", name, script[0], err)
	}
	return strings.TrimSpace(string(printed))
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
}

// clusterOfOne starts a cluster of one node, which names another port than its own if one is given.
func clusterOfOne(t *testing.T, args ...string) *redis.Client {
	node := startQueues(t, append(args, "--cluster-enabled", "yes", "--cluster-port", freePort(t))...)
	node.Do(background, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	eventually(t, "the cluster is ready", func() bool {
		return strings.Contains(node.ClusterInfo(background).Val(), "cluster_state:ok")
	})
	return node
}

// losing passes on what clients and a server say, but cuts a connection once instead of passing on the reply to a word.
// It returns its own port, and what sets that of the server.
func losing(t *testing.T, word string) (port string, lead func(to string)) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var target atomic.Value
	var hasLost atomic.Bool
	pass := func(client net.Conn) {
		server, err := net.Dial("tcp", "127.0.0.1:"+target.Load().(string))
		if err != nil {
			client.Close()
			return
		}
		var isLosing atomic.Bool
		copyAll := func(to, from net.Conn, look func(data []byte) bool) {
			defer client.Close()
			defer server.Close()
			for data := make([]byte, 65536); ; {
				n, err := from.Read(data)
				if err != nil || !look(data[:n]) {
					return
				}
				to.Write(data[:n])
			}
		}
		go copyAll(client, server, func([]byte) bool { return !isLosing.Load() })
		copyAll(server, client, func(data []byte) bool {
			if bytes.Contains(data, []byte(word)) && hasLost.CompareAndSwap(false, true) {
				isLosing.Store(true)
			}
			return true
		})
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(client)
		}
	}()
	return fmt.Sprint(listener.Addr().(*net.TCPAddr).Port), func(to string) { target.Store(to) }
}

func TestAPushThroughAClusterWhoseReplyIsLostIsNoDuplicate(t *testing.T) {
	between, lead := losing(t, "DQ.PUSH")
	node := clusterOfOne(t, "--cluster-announce-port", between)
	lead(port(node))
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{node.Options().Addr}})
	defer rdb.Close()
	do, err := Wrap(rdb)
	if err != nil {
		t.Fatal(err)
	}
	queue := dq.NewClient(do).Queue("q")
	if id, err := queue.Push(background, nil, dq.ID("m")); id != "m" || err != nil {
		t.Error("its reply was lost:", id, err)
	}
	if _, err := queue.Push(background, nil, dq.ID("m")); !errors.Is(err, dq.ErrDuplicate) {
		t.Error("it is there:", err)
	}
	node.Do(background, "DQ.PURGE", "q")
	once := dq.NewClient(do, dq.PushTimeout(0)).Queue("q")
	if _, err := once.Push(background, nil, dq.ID("n")); err != nil {
		t.Error(err)
	}
}

func TestACommandFollowsTheSlotOfItsQueue(t *testing.T) {
	from, to := clusterOfOne(t), startQueues(t, "--cluster-enabled", "yes", "--cluster-port", freePort(t))
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{from.Options().Addr}})
	defer rdb.Close()
	do, err := Wrap(rdb)
	if err != nil {
		t.Fatal(err)
	}
	queue := dq.NewClient(do).Queue("q")
	if _, err := queue.Len(background, ""); err != nil {
		t.Fatal(err)
	}
	bus := to.ConfigGet(background, "cluster-port").Val()["cluster-port"]
	from.Do(background, "CLUSTER", "MEET", "127.0.0.1", port(to), bus)
	eventually(t, "both know each other", func() bool {
		return strings.Contains(to.ClusterInfo(background).Val(), "cluster_slots_ok:16384") &&
			strings.Contains(from.ClusterInfo(background).Val(), "cluster_known_nodes:2")
	})
	slot := from.ClusterKeySlot(background, "q").Val()
	source, target := from.Do(background, "CLUSTER", "MYID").Val(), to.Do(background, "CLUSTER", "MYID").Val()
	to.Do(background, "CLUSTER", "SETSLOT", slot, "IMPORTING", source)
	from.Do(background, "CLUSTER", "SETSLOT", slot, "MIGRATING", target)
	if _, err := queue.Push(background, nil, dq.ID("while it moves")); err != nil {
		t.Error(err)
	}
	to.Do(background, "CLUSTER", "SETSLOT", slot, "NODE", target)
	from.Do(background, "CLUSTER", "SETSLOT", slot, "NODE", target)
	if _, err := queue.Push(background, nil, dq.ID("when it has moved")); err != nil {
		t.Error(err)
	}
	if n := to.Do(background, "DQ.LEN", "q").Val(); n != int64(2) {
		t.Error("not both are there:", n)
	}
}

func TestAWorkerHearsOfLossesThroughAnyClient(t *testing.T) {
	address := clusterOfOne(t).Options().Addr
	for name, client := range map[string]redis.UniversalClient{
		"one":     redis.NewClient(&redis.Options{Addr: address}),
		"cluster": redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{address}}),
	} {
		t.Run(name, func(t *testing.T) {
			defer client.Close()
			do, err := Wrap(client)
			if err != nil {
				t.Fatal(err)
			}
			lost, ready := make(chan error, 1), make(chan struct{})
			mux := dq.NewMux()
			mux.HandleFunc(name, func(ctx context.Context, _ *dq.Message) error {
				<-ctx.Done()
				lost <- dq.Cause(ctx)
				return nil
			})
			mux.HandleFunc("other", func(context.Context, *dq.Message) error { return nil })
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan struct{})
			worker := dq.NewWorker(do, mux, dq.OnEvent(func(e dq.Event) {
				if e.Kind == dq.Ready {
					close(ready)
				}
			}))
			go func() { _ = worker.Run(ctx); close(ended) }()
			<-ready
			queue := dq.NewClient(do).Queue(name)
			if _, err := queue.Push(ctx, nil, dq.ID("m")); err != nil {
				t.Fatal(err)
			}
			for {
				if m, err := queue.Get(ctx, "m"); err == nil && m.State == "inflight" {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			if _, err := queue.Cancel(ctx, "m"); err != nil {
				t.Fatal(err)
			}
			if cause := <-lost; cause == nil || !strings.Contains(cause.Error(), "cancelled") {
				t.Error(cause)
			}
			stopped := time.Now()
			stop()
			if <-ended; time.Since(stopped) > 3*time.Second {
				t.Error("it took long to stop:", time.Since(stopped))
			}
		})
	}
	if _, err := Wrap(redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": address}})); err == nil {
		t.Error("a ring is no client for a worker")
	}
}
