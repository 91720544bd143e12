package checker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/search"
)

// linearViolation puts a finding of [Linearizable] into words.
func (c *linearCheck) linearViolation(f finding) Violation {
	switch search.OpKind(f.rule) {
	case search.OpGrant:
		return c.overlapViolation(f)
	case search.OpNoPermits:
		return c.crowdedViolation(f)
	case search.OpHorizon:
		f.note = search.Kind(f.x)
	case search.OpBadToken:
		if f.x >= 0 {
			return c.tokenViolation(f)
		}
	}
	return c.word(f, map[search.OpKind]wording{
		search.OpHorizon: {BrokenPromise, nothing, "the operations have an order that is legal for a $note",
			"the operations on $lock have no legal order"},
		search.OpBusyTry: {BrokenPromise, nothing, "a try fails only if another owner can have held the lock",
			"client $client was refused $lock between $call and $return, when no client can have held it"},
		search.OpRegrant: {BrokenPromise, nothing, "a mutex that is not reentrant is not granted to its holder",
			"client $client was granted $lock at $return although it already held it"},
		search.OpRelease: {BrokenPromise, nothing, "only the holder can release",
			"client $client released $lock at $return without holding it, and without an error"},
		search.OpBadToken: {BrokenPromise, nothing, "a re-entry repeats the token of its hold",
			"client $client re-entered $lock at $return and got token $token, which is not that of its hold"},
	}[search.OpKind(f.rule)])
}

func (c *linearCheck) overlapViolation(f finding) Violation {
	x, y := &c.holds[f.x], &c.holds[f.y]
	w := c.pairViolation(x, y, segment{f.start, f.end})
	w.Rule = "the operations have an order in which " +
		either(x.reader != y.reader, "a writer holds the lock alone", "one owner at a time holds the lock")
	w.Class, _ = c.blame(x, y, segment{f.start, f.end}, Options{})
	if x.until <= y.from { // two grants, but never two holders
		w.Text = fmt.Sprintf("client %d was granted %s at %s although client %d, which had left its critical section, "+
			"had not released it", w.Clients[1], lockName(w.Key), format.Instant(y.from), w.Clients[0])
	}
	w.Text += ": the operations have no legal order"
	return w
}

func (c *linearCheck) tokenViolation(f finding) Violation {
	x, y := &c.holds[f.x], &c.holds[f.y]
	w := c.involving(BrokenPromise, x.span, y.span)
	w.Rule, w.Events = "tokens grow in the order of the holds", []int{c.granted(x), c.granted(y)}
	w.Text = fmt.Sprintf("client %d was granted %s with token %d at %s, after client %d had held it with token %d: "+
		"the operations have no legal order", w.Clients[1], lockName(w.Key), y.token, format.Instant(y.from),
		w.Clients[0], x.token)
	return w
}

func (c *linearCheck) crowdedViolation(f finding) Violation {
	crowd := f.note.([]permitHold) // the granted and the held permits, if any
	y, s := &crowd[0], &c.h.Spans[f.y]
	f.note = format.Count(int(y.permits), "permit")
	w := c.word(f, wording{BrokenPromise, nothing,
		"the operations have an order in which no more permits are held than exist",
		"client $client was granted $note of $lock at $return, more than were available"})
	if len(crowd) == 1 {
		return w
	}
	x := &crowd[1]
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
