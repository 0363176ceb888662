package dq_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"dq"
	"dq/redigo"
)

// blocks returns the programs of the page in a language.
func blocks(t *testing.T, language string) []string {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, block := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		found = append(found, block[1])
	}
	return found
}

// build builds a program of the page in a module next to this one, as the page says. It finds the source of redigo
// where this module finds it, so no proxy is asked.
func build(t *testing.T, source string) string {
	here := must(os.Getwd())
	redigo, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomodule/redigo").Output()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	for name, text := range map[string]string{
		"main.go": source,
		"go.mod":  fmt.Sprintf("module shop\n\ngo 1.19\n\nrequire dq v0.2.0\n\nreplace dq => %s\n", here),
		"go.work": fmt.Sprintf("go 1.19\n\nuse .\n\nuse %s\n\nreplace github.com/gomodule/redigo => %s\n", here,
			strings.TrimSpace(string(redigo))),
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compile := exec.Command("go", "build", "-o", "shop", ".")
	compile.Dir = directory
	compile.Env = append(os.Environ(), "GOWORK="+filepath.Join(directory, "go.work"))
	if said, err := compile.CombinedOutput(); err != nil {
		t.Fatal(string(said))
	}
	return filepath.Join(directory, "shop")
}

func TestTheFiveMinutesWork(t *testing.T) {
	s := newServer(t)
	program := build(t, strings.ReplaceAll(blocks(t, "go")[0], "redis://localhost:6379", s.url()))
	shop := exec.Command(program)
	output, err := shop.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	defer shop.Process.Kill()
	if said, err := bufio.NewReader(output).ReadString('\n'); said != "mail to ann@example.org\n" {
		t.Error(said, err)
	}
	var dead []*dq.Record
	eventually(t, "the other message is dead", func() bool {
		dead = must(s.queue("mail").Peek(background, "dead", 1))
		return len(dead) == 1
	})
	if !strings.Contains(dead[0].Error, "no address") {
		t.Error(dead[0].Error)
	}
	shop.Process.Signal(syscall.SIGINT)
	if err := shop.Wait(); err != nil {
		t.Error(err)
	}
}

func TestTheRightsOfThePageAreEnough(t *testing.T) {
	s := newServer(t)
	page := must(os.ReadFile("README.md"))
	rights := strings.Fields(regexp.MustCompile("(?m)^ACL SETUSER .*$").FindString(string(page)))
	args := make([]any, len(rights))
	for i, word := range rights {
		args[i] = word
	}
	s.ask(args...)
	do := must(redigo.Open(strings.Replace(s.url(), "://", "://worker:secret@", 1)))
	defer do.Close()
	began, causes := make(chan bool, 1), make(chan error, 1)
	mux := dq.NewMux()
	mux.HandleFunc("mail", func(ctx context.Context, m *dq.Message) error {
		if err := m.Save(ctx, []byte("begun")); err != nil {
			t.Error(err)
		}
		began <- true
		<-ctx.Done()
		causes <- dq.Cause(ctx)
		return nil
	})
	_, stop := s.work(do, mux)
	must(s.queue("mail").Push(background, nil, dq.ID("m")))
	<-began
	must(s.queue("mail").Cancel(background, "m"))
	if err := <-causes; err.Error() != "dq: the message is lost: cancelled" {
		t.Error(err)
	}
	eventually(t, "a pop waits", func() bool { return must(s.queue("mail").Info(background)).Waiting == 1 })
	stop()
	if refused := s.ask("ACL", "LOG").([]any); len(refused) > 0 {
		t.Errorf("%q", refused)
	}
}
