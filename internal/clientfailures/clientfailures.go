// Package clientfailures says which clients of a run failed: that is a reason why a run shows little, and no violation
// of the lock. Judgements and reports say the same.
package clientfailures

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Describe returns a clause for each kind of failure: a client violated the protocol, exited unexpectedly, or did not
// reply. Each names the first such client, the time and the reason, and counts the others. A client that a fault has
// killed has not failed.
func Describe(h *history.History) (clauses []string) {
	for _, kind := range []struct{ code, what string }{
		{history.CodeProtocol, "violated the protocol at %s and was killed: %s"},
		{history.CodeExited, "exited unexpectedly at %s: %s"},
	} {
		var first *history.Exit
		others := 0
		for i := range h.Exits {
			switch {
			case h.Exits[i].Code != kind.code:
			case first == nil:
				first = &h.Exits[i]
			default:
				others++
			}
		}
		if first == nil {
			continue
		}
		text := fmt.Sprintf("client %d "+kind.what, first.Process.Client(h.Clients), format.Instant(first.Time), first.Text)
		if others > 0 {
			text += fmt.Sprintf(" (so did %s)", format.Count(others, "other client"))
		}
		clauses = append(clauses, text)
	}
	if text := noReply(h); text != "" {
		clauses = append(clauses, text)
	}
	return clauses
}

// noReply is the clause about the requests for whose replies the harness stopped waiting; "" if there are none.
func noReply(h *history.History) (text string) {
	more := -1
	for _, u := range h.Unknown {
		if !u.Timeout {
			continue
		}
		if more++; more == 0 {
			s := &h.Spans[u.Span]
			lock := "the lock"
			if name := h.Keys[s.Key]; name != "" {
				lock = format.Line(name)
			}
			text = fmt.Sprintf("client %d did not reply for %s to the %s of %s that it was sent at %s",
				s.Process.Client(h.Clients), format.Duration(u.Time-s.Call), s.Op, lock, format.Instant(s.Call))
		}
	}
	if more > 0 {
		text += fmt.Sprintf(" (%s without a reply)", format.Count(more, "more request"))
	}
	return text
}
