package checker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
)

// linearViolation puts a finding of [Linearizable] into words.
func (c *linearCheck) linearViolation(f finding) Violation {
	switch opKind(f.rule) {
	case opGrant:
		return c.overlapViolation(f)
	case opNoPermits:
		return c.crowdedViolation(f)
	case opBadToken:
		return c.tokenViolation(f)
	case opHorizon:
		s := &c.h.Spans[f.y]
		return c.spanViolation(f.y, "the operations have an order that is legal for a "+lockKind(f.x).String(),
			fmt.Sprintf("the operations on %s have no legal order", lockName(c.h.Keys[s.Key])))
	}
	s := &c.h.Spans[f.y]
	who, key := s.Process.Client(c.h.Clients), lockName(c.h.Keys[s.Key])
	if opKind(f.rule) == opBusyTry {
		return c.spanViolation(f.y, "a try fails only if another owner can have held the lock",
			fmt.Sprintf("client %d was refused %s between %s and %s, when no client can have held it",
				who, key, format.Instant(s.Call), format.Instant(s.Return)))
	}
	if opKind(f.rule) == opRegrant {
		return c.spanViolation(f.y, "a mutex that is not reentrant is not granted to its holder",
			fmt.Sprintf("client %d was granted %s at %s although it already held it", who, key, format.Instant(s.Return)))
	}
	return c.spanViolation(f.y, "only the holder can release",
		fmt.Sprintf("client %d released %s at %s without holding it, and without an error",
			who, key, format.Instant(s.Return)))
}

func (c *linearCheck) overlapViolation(f finding) Violation {
	x, y := &c.holds[f.x], &c.holds[f.y]
	w := c.pairViolation(x, y, segment{f.start, f.end})
	w.Rule = "the operations have an order in which one owner at a time holds the lock"
	if x.reader != y.reader {
		w.Rule = "the operations have an order in which a writer holds the lock alone"
	}
	w.Class, _ = c.blame(x, y, segment{f.start, f.end}, Options{})
	if x.until <= y.from { // two grants, but never two holders
		w.Text = fmt.Sprintf("client %d was granted %s at %s although client %d, which had left its critical section, "+
			"had not released it", w.Clients[1], lockName(w.Key), format.Instant(y.from), w.Clients[0])
	}
	w.Text += ": the operations have no legal order"
	return w
}

func (c *linearCheck) tokenViolation(f finding) Violation {
	if f.x < 0 {
		s := &c.h.Spans[f.y]
		return c.spanViolation(f.y, "a re-entry repeats the token of its hold",
			fmt.Sprintf("client %d re-entered %s at %s and got token %d, which is not that of its hold",
				s.Process.Client(c.h.Clients), lockName(c.h.Keys[s.Key]), format.Instant(s.Return), s.Token))
	}
	x, y := &c.holds[f.x], &c.holds[f.y]
	w := c.involving(BrokenPromise, x.span, y.span)
	w.Rule, w.Events = "tokens grow in the order of the holds", []int{c.granted(x), c.granted(y)}
	w.Text = fmt.Sprintf("client %d was granted %s with token %d at %s, after client %d had held it with token %d: "+
		"the operations have no legal order", w.Clients[1], lockName(w.Key), y.token, format.Instant(y.from),
		w.Clients[0], x.token)
	return w
}

func (c *linearCheck) crowdedViolation(f finding) Violation {
	y := &c.permitHolds[f.y]
	s := &c.h.Spans[y.span]
	w := c.spanViolation(y.span, "the operations have an order in which no more permits are held than exist",
		fmt.Sprintf("client %d was granted %s of %s at %s, more than were available", c.client(y.span),
			format.Count(int(y.permits), "permit"), lockName(c.h.Keys[s.Key]), format.Instant(y.from)))
	if f.x < 0 {
		return w
	}
	x := &c.permitHolds[f.x]
	by := c.involving("", x.span, y.span)
	w.Clients, w.Owners, w.Events = by.Clients, by.Owners, []int{int(c.h.Spans[x.span].Ended), int(s.Ended)}
	held := fmt.Sprintf("client %d held %s", w.Clients[0], format.Count(int(x.permits), "permit"))
	for _, i := range c.byKey[s.Key] {
		if c.holds[i].span != y.span {
			continue
		}
		w.Class = c.crowdClass(&c.holds[i], Options{})
		if all := c.crowdAt(i, c.o); len(all.names) > 2 {
			own := slices.Index(all.names, fmt.Sprintf("client %d (%d)", c.client(y.span), c.weight(i)))
			held = fmt.Sprintf("%s were held, by %s", format.Number(int(all.permits-c.weight(i))),
				strings.Join(slices.Delete(all.names, own, own+1), ", "))
		}
	}
	w.Text += ": " + held
	return w
}
