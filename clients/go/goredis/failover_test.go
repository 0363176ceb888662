package goredis

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dq"

	"github.com/redis/go-redis/v9"
)

var background = context.Background()

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within a minute:", what)
		}
	}
}

// start starts a server of a test, and returns a client of it.
func start(t *testing.T, args ...string) *redis.Client {
	t.Helper()
	server := exec.Command(found(t, "DQ_SERVER", "find-server.sh"), args...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	port := args[len(args)-1]
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	t.Cleanup(func() {
		rdb.Close()
		server.Process.Kill()
		server.Wait()
	})
	eventually(t, "the server answers", func() bool { return rdb.Ping(background).Err() == nil })
	return rdb
}

// startQueues starts a server with the module.
func startQueues(t *testing.T, args ...string) *redis.Client {
	t.Helper()
	common := []string{"--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir(), "--repl-diskless-sync-delay", "0",
		"--loadmodule", found(t, "DQ_MODULE", "find-module.sh", "debug")}
	return start(t, append(append(common, args...), "--port", freePort(t))...)
}

func port(rdb *redis.Client) string {
	_, port, _ := strings.Cut(rdb.Options().Addr, ":")
	return port
}

// sentinel starts a Sentinel of a master, and waits until it can name the replica the master.
func sentinel(t *testing.T, master, replica *redis.Client) *redis.Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	config := "bind 127.0.0.1\nsentinel monitor main 127.0.0.1 " + port(master) + " 1\n" +
		"sentinel failover-timeout main 2000\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	watching := start(t, file, "--sentinel", "--port", freePort(t))
	eventually(t, "the replica has the data", func() bool {
		return strings.Contains(replica.Info(background, "replication").Val(), "master_link_status:up")
	})
	return watching
}

// work runs a worker of a queue until the test ends, and passes the payloads on that it works on.
func work(t *testing.T, do dq.Dialer, queue string) <-chan string {
	t.Helper()
	done, ready := make(chan string, 100), make(chan struct{})
	mux := dq.NewMux()
	mux.HandleFunc(queue, func(_ context.Context, m *dq.Message) error {
		done <- string(m.Payload)
		return nil
	})
	ctx, stop := context.WithCancel(background)
	ended := make(chan struct{})
	worker := dq.NewWorker(do, mux, dq.OnEvent(func(e dq.Event) {
		if e.Kind == dq.Ready {
			close(ready)
		}
	}))
	go func() { _ = worker.Run(ctx); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })
	<-ready
	return done
}

func TestAMasterThatLivesOnIsLeftWhenSentinelsNameAnother(t *testing.T) {
	master := startQueues(t)
	replica := startQueues(t, "--replicaof", "127.0.0.1 "+port(master))
	watching := sentinel(t, master, replica)
	given := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "main", SentinelAddrs: []string{watching.Options().Addr},
	})
	defer given.Close()
	wrapped, err := Wrap(given)
	if err != nil {
		t.Fatal(err)
	}
	byOptions := New(given.Options())
	defer byOptions.Close()
	defer wrapped.(*Client).Close()
	doers := map[string]dq.Dialer{"wrapped": wrapped, "options": byOptions}
	done := map[string]<-chan string{}
	push := func(name string) string {
		id, err := dq.NewClient(doers[name]).Queue("q").Push(background, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		return id
	}
	for name, do := range doers {
		push(name)
		done[name] = work(t, do, name)
	}

	heard := watching.Subscribe(background, "+switch-master")
	defer heard.Close()
	eventually(t, "it can fail over", func() bool {
		return watching.Do(background, "SENTINEL", "FAILOVER", "main").Err() == nil
	})
	<-heard.Channel()
	// The clients have to hear of it, too, or to ask for it.
	for name, late := range map[string]time.Duration{"wrapped": askInterval / 3, "options": 2 * askInterval} {
		time.Sleep(late)
		if id := push(name); replica.Do(background, "DQ.GET", "q", id).Err() != nil {
			t.Error(name, "the old master has taken the message, and it is lost")
		}
		replica.Do(background, "DQ.PUSH", name, "after")
		if payload := <-done[name]; payload != "after" {
			t.Error(name, payload)
		}
	}
}
