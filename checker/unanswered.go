package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Unanswered says which clients did not do what the protocol demands, in a clause for each kind: those that violated
// it, those that exited unexpectedly, and those that did not reply. Each names the first client, when, and
// why. A client that a fault has killed is not among them.
func Unanswered(h *history.History) (clauses []string) {
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

// noReply is about the requests for whose replies the harness stopped waiting; "" if there are none.
func noReply(h *history.History) (text string) {
	more := -1
	for _, u := range h.Unknown {
		if !u.Timeout {
			continue
		}
		if more++; more == 0 {
			s := &h.Spans[u.Span]
			text = fmt.Sprintf("client %d did not reply for %s to the %s of %s that it was sent at %s",
				s.Process.Client(h.Clients), format.Duration(u.Time-s.Call), s.Op, lockName(h.Keys[s.Key]), format.Instant(s.Call))
		}
	}
	if more > 0 {
		text += fmt.Sprintf(" (%s without a reply)", format.Count(more, "more request"))
	}
	return text
}
