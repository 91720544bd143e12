package cause

import (
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// findSessionEnded: the hold, which has no lease, ended with the session of its client, whose connection a fault cut,
// or of which the server had heard nothing for longer than its timeout.
func findSessionEnded(q *inquiry) *Cause {
	if q.node() == "" || q.p.ValidUntil > 0 || q.r.Manifest.Topology.Kind != cluster.Postgres {
		return nil
	}
	a, b := q.p.A, q.p.B
	c := because("%s, granted it at %s, ", a, a.GrantedAt())
	cut := q.r.EffectOn(cluster.ClientName(a.Client), a.Asked, b.From, func(f *evidence.Fault) bool {
		return f.Does(history.FaultDrops, history.ObjectConnections)
	})
	switch option := q.idleTimeout(); {
	case option != "":
		if f := q.r.FaultIn(a, a.From, b.From); f != nil {
			c.blame(f, "%s and ", f.During())
		}
		c.Add("sent nothing for so long that %s ended its session (%s)", q.node(), evidence.Quote(option))
	case cut != nil:
		c.blame(cut, "%s at %s (%s), which ended its session", cut.Predicate(1), cut.Took(), cut)
	default:
		return nil
	}
	if gone := q.gone(q.node(), a, b.To, a.From); gone != nil {
		c.explain(seenIn(gone, 8, "%s no longer has the lock for %s", gone.Node, a))
	}
	c.Add(", and with it the hold; %s was granted it at %s", b, b.GrantedAt())
	return c
}

// idleTimeout is the option by which the server ends the session of a client that is idle for as long as the first
// holder may have been by the second grant; "": none.
func (q *inquiry) idleTimeout() string {
	for _, option := range []string{"idle_in_transaction_session_timeout", "idle_session_timeout"} {
		idle := q.r.Manifest.Topology.Options[option]
		n, err := strconv.Atoi(idle)
		if err == nil && n > 0 && q.p.B.From-q.p.A.Asked >= time.Duration(n)*time.Millisecond {
			return option + ": " + idle
		}
	}
	return ""
}
