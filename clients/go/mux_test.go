package dq_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"dq"
)

func TestAnErrorShowsNothingOfThePayload(t *testing.T) {
	type card struct {
		Number int8
		Until  time.Time
	}
	s := newServer(t)
	mux := dq.NewMux()
	failed := make(chan error, 1)
	dq.HandleJSON(mux, "cards", func(context.Context, *dq.Message, card) error { return nil })
	s.work(s.do, mux, dq.OnEvent(func(e dq.Event) {
		if e.Kind == dq.Failed {
			failed <- e.Err
		}
	}))
	for payload, expected := range map[string]string{
		`{"Number": 4711}`:       "Number is no int8",
		`{"Until": "4711-0815"`:  "at byte 21",
		`{"Until": "4711-0815"}`: "JSON for a dq_test.card",
	} {
		if _, err := s.queue("cards").Push(background, []byte(payload)); err != nil {
			t.Fatal(err)
		}
		err := <-failed
		if text := err.Error(); strings.Contains(text, "4711") || !strings.Contains(text, expected) {
			t.Error(text)
		}
		var kind *json.UnmarshalTypeError
		if strings.Contains(payload, "4711}") != errors.As(err, &kind) {
			t.Error("what is wrong can be looked at:", err)
		}
	}
}
