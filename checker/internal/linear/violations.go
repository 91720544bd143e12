package linear

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker/internal/exclusion"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/search"
)

// linearViolation puts a finding of [property.Linearizable] into words.
func (c *check) linearViolation(f finding.Finding) property.Violation {
	switch search.OpKind(f.Rule) {
	case search.OpGrant:
		return c.overlapViolation(f)
	case search.OpNoPermits:
		return c.crowdedViolation(f)
	case search.OpHorizon:
		f.Note = search.Kind(f.X)
	case search.OpBadToken:
		if f.X >= 0 {
			return c.tokenViolation(f)
		}
	}
	return finding.Word(c.View, f, Rules()[f.Rule])
}

func (c *check) overlapViolation(f finding.Finding) property.Violation {
	x, y := &c.Holds[f.X], &c.Holds[f.Y]
	w := exclusion.PairViolation(c.View, x, y, segment.Of(f.Start, f.End))
	w.Rule = "the operations have an order in which " +
		finding.Either(x.Reader != y.Reader, "a writer holds the lock alone", "one owner at a time holds the lock")
	w.Class, _ = exclusion.Blame(c.View, x, y, segment.Of(f.Start, f.End), given.Options{})
	if x.Until <= y.From { // two grants, but never two holders
		w.Text = fmt.Sprintf("client %d was granted %s at %s although client %d, which had left its critical section, "+
			"had not released it", w.Clients[1], finding.LockName(w.Key), format.Instant(y.From), w.Clients[0])
	}
	w.Text += ": the operations have no legal order"
	return w
}

func (c *check) tokenViolation(f finding.Finding) property.Violation {
	x, y := &c.Holds[f.X], &c.Holds[f.Y]
	w := finding.Involving(c.View, property.BrokenPromise, x.Span, y.Span)
	w.Rule, w.Events = "tokens grow in the order of the holds", []int{c.Granted(x), c.Granted(y)}
	w.Text = fmt.Sprintf("client %d was granted %s with token %d at %s, after client %d had held it with token %d: "+
		"the operations have no legal order", w.Clients[1], finding.LockName(w.Key), y.Token, format.Instant(y.From),
		w.Clients[0], x.Token)
	return w
}

func (c *check) crowdedViolation(f finding.Finding) property.Violation {
	crowd := f.Note.([]permitHold) // the granted and the held permits, if any
	y, s := &crowd[0], &c.H.Spans[f.Y]
	f.Note = format.Count(int(y.permits), "permit")
	w := finding.Word(c.View, f, Rules()[f.Rule])
	if len(crowd) == 1 {
		return w
	}
	x := &crowd[1]
	by := finding.Involving(c.View, "", x.span, y.span)
	w.Clients, w.Owners, w.Events = by.Clients, by.Owners, []int{int(c.H.Spans[x.span].Ended), int(s.Ended)}
	held := fmt.Sprintf("client %d held %s", w.Clients[0], format.Count(int(x.permits), "permit"))
	for _, i := range c.ByKey[s.Key] {
		if c.Holds[i].Span != y.span {
			continue
		}
		w.Class = exclusion.CrowdClass(c.View, &c.Holds[i], given.Options{})
		if all := exclusion.CrowdAt(c.View, i, c.o); len(all.Names) > 2 {
			own := slices.Index(all.Names, fmt.Sprintf("client %d (%d)", c.Client(y.span), c.Weight(i)))
			held = fmt.Sprintf("%s were held, by %s", format.Number(int(all.Permits-c.Weight(i))),
				strings.Join(slices.Delete(all.Names, own, own+1), ", "))
		}
	}
	w.Text += ": " + held
	return w
}
