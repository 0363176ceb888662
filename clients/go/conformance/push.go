//go:build ignore

// The producer that the conformance suite drives: a push for each line of standard input.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"os"
	"time"

	"dq"
	"dq/conformance/internal/escaped"
)

type wish struct {
	Queue, Payload string
	ID, Group      *string
	Delay          *float64
	Priority       *int
	Headers        map[string]string
}

// classes are the names that the clients of all languages print.
var classes = []struct {
	err  error
	name string
}{
	{dq.ErrQueueFull, "QueueFull"},
	{dq.ErrDeadID, "DeadId"},
	{dq.ErrTooLarge, "TooLarge"},
	{dq.ErrQueueClosed, "QueueClosed"},
	{dq.ErrOutOfMemory, "OutOfMemory"},
	{dq.ErrConnectionLost, "ConnectionLost"},
}

func push(client *dq.Client, wanted wish) map[string]any {
	var options []dq.PushOption
	if wanted.ID != nil {
		options = append(options, dq.ID(escaped.Bytes(*wanted.ID)))
	}
	if wanted.Group != nil {
		options = append(options, dq.Group(escaped.Bytes(*wanted.Group)))
	}
	if wanted.Delay != nil {
		options = append(options, dq.Delay(time.Duration(*wanted.Delay*float64(time.Millisecond))))
	}
	if wanted.Priority != nil {
		options = append(options, dq.Priority(*wanted.Priority))
	}
	for name, value := range wanted.Headers {
		options = append(options, dq.Header(escaped.Bytes(name), escaped.Bytes(value)))
	}
	queue, payload := client.Queue(escaped.Bytes(wanted.Queue)), []byte(escaped.Bytes(wanted.Payload))
	id, err := queue.Push(context.Background(), payload, options...)
	if err == nil {
		return map[string]any{"id": id}
	}
	if errors.Is(err, dq.ErrDuplicate) {
		return map[string]any{"id": nil}
	}
	log.Print(err)
	for _, class := range classes {
		if errors.Is(err, class.err) {
			return map[string]any{"error": class.name}
		}
	}
	return map[string]any{"error": "Refused"}
}

func main() {
	url := flag.String("url", "", "the server")
	flag.Parse()
	do, err := open(*url)
	if err != nil {
		log.Fatal(err)
	}
	client := dq.NewClient(do)
	lines := bufio.NewReader(os.Stdin)
	for {
		line, end := lines.ReadBytes('\n')
		if len(line) > 1 {
			var wanted wish
			if err := escaped.Unmarshal(line, &wanted); err != nil {
				log.Fatal(err)
			}
			os.Stdout.Write(append(escaped.Marshal(push(client, wanted)), '\n'))
		}
		if end == io.EOF {
			return
		} else if end != nil {
			log.Fatal(end)
		}
	}
}
