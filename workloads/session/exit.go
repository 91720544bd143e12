package session

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// failure is the lack of a reply, for the history. Its code is its kind, and its text has the rest.
func failure(err error) *history.Error {
	text := err.Error()
	for _, f := range []struct {
		kind error
		code string
	}{
		{client.ErrKilled, history.CodeKilled},
		{client.ErrExited, history.CodeExited},
		{client.ErrProtocol, history.CodeProtocol},
	} {
		if errors.Is(err, f.kind) {
			return &history.Error{Code: f.code, Text: strings.TrimPrefix(text, f.kind.Error()+": ")}
		}
	}
	if errors.Is(err, client.ErrTimeout) && !errors.Is(err, context.Canceled) { // not when the run is abandoned
		return &history.Error{Code: history.CodeTimeout, Text: text}
	}
	return &history.Error{Code: history.CodeUnasked, Text: text}
}

// exit records, once, that a client has exited without being closed, and why: err, or the client's own reason.
func (s *Session) exit(err error) {
	s.mu.Lock()
	crashed, p := !s.exited && !s.closing, s.process
	s.exited = true
	s.mu.Unlock()
	if !crashed {
		return
	}
	if c, ok := s.client.(interface{ Err() error }); ok && err == nil {
		err = c.Err()
	}
	var why *history.Error
	if err != nil {
		why = failure(err)
	}
	s.record.Complete(history.Event{Process: p, F: history.Crash}, history.Info, s.sinceKilled(), why)
}

// sinceKilled is how long before its exit a client was killed; nil: it exited at once, or was not killed.
func (s *Session) sinceKilled() *history.Value {
	c, ok := s.client.(interface{ Killed() time.Time })
	if !ok || c.Killed().IsZero() {
		return nil
	}
	age := time.Since(c.Killed())
	if age < time.Millisecond {
		return nil
	}
	return &history.Value{Age: age}
}
