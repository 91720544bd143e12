package cause

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// findUnrecorded: an acquire succeeded while the servers had the lock for another client.
func findUnrecorded(q *inquiry) *Cause {
	if q.p == nil || q.p.Outlived() || q.p.ByA.Instead == nil && q.p.ByB.Instead == nil {
		return nil
	}
	c, p := new(Cause), q.p
	seen := (*history.Sample)(nil)
	for i, h := range []*evidence.Hold{p.A, p.B} {
		if i > 0 {
			c.Add("; ")
		}
		g := p.Grant(h)
		switch g.Instead {
		case nil:
			c.Add("%s was granted it at %s%s", h, h.GrantedAt(), p.By(h))
			continue
		case seen:
			c.Add("so did %s, whose acquire succeeded at %s", h, h.GrantedAt())
		default:
			c.Add("%s, whose acquire succeeded at %s, believed that it had it; no server recorded it: %s had it for %s at %s",
				h, h.GrantedAt(), g.Instead.Node, evidence.ClientName(g.Other), g.Instead)
			c.explain(seenIn(g.Instead, 9, "%s has the key for %s", g.Instead.Node, evidence.ClientName(g.Other)))
		}
		seen = g.Instead
	}
	return c
}
