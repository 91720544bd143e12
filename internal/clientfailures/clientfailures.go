// Package clientfailures says which clients of a run failed: that is a reason why a run shows little, and no violation
// of the lock. Judgements and reports say the same.
package clientfailures

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Describe returns a clause for each kind of failure: clients violated the protocol, exited unexpectedly, were refused
// for want of a password, or did not reply. A client that a fault has killed has not failed.
func Describe(h *history.History) (clauses []string) {
	clauses = Ended(h)
	if text := withoutPassword(h); text != "" {
		clauses = append(clauses, text)
	}
	if text := noReply(h); text != "" {
		clauses = append(clauses, text)
	}
	return clauses
}

// Ended returns a clause for each way in which clients ended although no fault had killed them: they violated the
// protocol, or their processes exited. It names these clients, and the time and the reason of the first.
func Ended(h *history.History) (clauses []string) {
	for _, way := range []struct{ code, how string }{
		{history.CodeProtocol, "violated the protocol"},
		{history.CodeExited, "exited unexpectedly"},
	} {
		var first history.Exit
		var alike, others []string // clients with the reason of the first, and with other reasons
		for _, exit := range h.Exits {
			client := strconv.Itoa(exit.Process.Client(h.Clients))
			switch {
			case exit.Code != way.code:
			case len(alike) == 0:
				first, alike = exit, []string{client}
			case exit.Text == first.Text:
				alike = append(alike, client)
			default:
				others = append(others, client)
			}
		}
		if len(alike) > 0 {
			clauses = append(clauses, ending(first, way.how, alike, others))
		}
	}
	return clauses
}

// ending says how clients ended, for the same reason as the first of them, and others for other reasons.
func ending(first history.Exit, how string, alike, others []string) string {
	at := " at "
	if len(alike) > 1 {
		at = ", the first at "
	}
	text := named(alike) + " " + how + at + format.Instant(first.Time)
	if first.Code == history.CodeProtocol {
		text += " and " + wasOrWere(alike) + " killed"
	}
	if first.Text != "" {
		text += ": " + first.Text
	}
	if len(others) > 0 {
		text += fmt.Sprintf(" (so did %s, for other reasons)", named(others))
	}
	return text
}

// mostNamed is how many clients are named.
const mostNamed = 20

// named are clients by their numbers: "clients 1, 2 and 3".
func named(clients []string) string {
	if len(clients) == 1 {
		return "client " + clients[0]
	}
	last := clients[len(clients)-1]
	if more := len(clients) - mostNamed; more > 0 {
		clients, last = clients[:mostNamed+1], format.Number(more)+" more"
	}
	return "clients " + strings.Join(clients[:len(clients)-1], ", ") + " and " + last
}

// wasOrWere agrees with clients.
func wasOrWere(clients []string) string {
	if len(clients) == 1 {
		return "was"
	}
	return "were"
}

// withoutPassword is the clause about clients that have not authenticated; "" if there are none.
func withoutPassword(h *history.History) (text string) {
	more := -1
	for _, f := range h.Faults {
		if f.Name != history.NoPassword {
			continue
		}
		if more++; more == 0 {
			text = f.Detail
		}
	}
	if more > 0 {
		text += fmt.Sprintf("; so do %s", format.Count(more, "other client"))
	}
	return text
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
