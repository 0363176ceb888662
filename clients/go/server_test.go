package dq_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dq"
	"dq/redigo"
)

// server is a server with the module, of one test.
type server struct {
	t      *testing.T
	port   int
	socket string
	do     *redigo.Client
}

// found returns what an environment variable names, or what a script prints.
func found(t *testing.T, name string, script ...string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	printed, err := exec.Command("../../scripts/"+script[0], script[1:]...).Output()
	if err != nil {
		t.Fatalf("set %s, or see why scripts/%s fails: %v", name, script[0], err)
	}
	return strings.TrimSpace(string(printed))
}

func newServer(t *testing.T) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, port: listener.Addr().(*net.TCPAddr).Port, socket: filepath.Join(t.TempDir(), "s")}
	listener.Close()
	var log bytes.Buffer
	process := exec.Command(found(t, "DQ_SERVER", "find-server.sh"), "--port", fmt.Sprint(s.port), "--bind", "127.0.0.1",
		"--unixsocket", s.socket, "--save", "", "--dir", t.TempDir(),
		"--loadmodule", found(t, "DQ_MODULE", "find-module.sh", "debug"))
	process.Stdout = &log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	s.do, err = redigo.Open(s.url())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.do.Close()
		process.Process.Kill()
		process.Wait()
		if strings.Contains(log.String(), "panicked") || t.Failed() {
			t.Error(log.String())
		}
	})
	eventually(t, "the server answers", func() bool {
		_, err := s.do.Do(context.Background(), "PING")
		return err == nil
	})
	return s
}

func (s *server) url() string { return fmt.Sprintf("redis://127.0.0.1:%d", s.port) }

// ask sends a command.
func (s *server) ask(args ...any) any {
	s.t.Helper()
	reply, err := s.do.Do(context.Background(), args...)
	if err != nil {
		s.t.Fatal(args, err)
	}
	return reply
}

// queue returns a queue by the client.
func (s *server) queue(name string, options ...dq.ClientOption) *dq.Queue {
	return dq.NewClient(s.do, options...).Queue(name)
}

// work runs a worker until the test ends, or the function that it returns is called.
func (s *server) work(do dq.Doer, mux *dq.Mux, options ...dq.WorkerOption) (*dq.Worker, func()) {
	s.t.Helper()
	ready := make(chan struct{})
	hook := dq.OnEvent(func(e dq.Event) {
		if e.Kind == dq.Ready {
			close(ready)
		}
	})
	worker := dq.NewWorker(do, mux, append(options, hook)...)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	select {
	case <-ready:
	case err := <-ended:
		s.t.Fatal("the worker has ended:", err)
	case <-time.After(30 * time.Second):
		s.t.Fatal("the worker is not ready")
	}
	stopped := false
	finish := func() {
		if stop(); !stopped {
			stopped = true
			if err := <-ended; err != nil {
				s.t.Error(err)
			}
		}
	}
	s.t.Cleanup(finish)
	return worker, finish
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 30 s:", what)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var background = context.Background()
