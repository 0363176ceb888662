package goredis

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
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

// clusterOfOne starts a cluster of one node and returns its address.
func clusterOfOne(t *testing.T) string {
	port := freePort(t)
	node := exec.Command(found(t, "DQ_SERVER", "find-server.sh"), "--port", port, "--bind", "127.0.0.1", "--save", "",
		"--dir", t.TempDir(), "--cluster-enabled", "yes", "--cluster-port", freePort(t),
		"--loadmodule", found(t, "DQ_MODULE", "find-module.sh", "debug"))
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		node.Process.Kill()
		node.Wait()
	})
	address := "127.0.0.1:" + port
	rdb := redis.NewClient(&redis.Options{Addr: address})
	defer rdb.Close()
	ctx := context.Background()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		rdb.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
		if strings.Contains(rdb.Do(ctx, "CLUSTER", "INFO").String(), "cluster_state:ok") {
			return address
		}
		if time.Now().After(end) {
			t.Fatal("the cluster is not ready")
		}
	}
}

func TestAWorkerHearsOfLossesThroughAnyClient(t *testing.T) {
	address := clusterOfOne(t)
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
