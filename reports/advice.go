package reports

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
)

// advise says what would have prevented the overlap, chosen by its cause. What
// this run's data shows is marked as measured, the rest is advice.
func (p *pair) advise() []Advice {
	var all []Advice
	switch p.cause {
	case byFailover:
		all = []Advice{
			{Text: "Let the grant wait for replicas: `WAIT k` on the same connection as the write (another connection's " +
				"WAIT counts other writes), and give the lock back if fewer answered. It narrows the window; a promotion " +
				"of a replica that was not among the k still loses the lock."},
			{Text: "Do not let one master decide: a quorum of independent masters, with `appendfsync always` or a restart " +
				"delayed by more than the longest lease, survives the loss of any minority."},
		}
	case byRestart:
		all = []Advice{{Text: "A node that forgets its grants breaks the lock: `appendfsync always`, or keep a restarted " +
			"node away from clients for longer than the longest lease (the delayed restart of the Redlock page)."}}
	case byStall:
		all = []Advice{{Text: "No lease can prevent this: a client that stands still cannot notice that its time is up, " +
			"and its watchdog stands still with it (Kleppmann 2016). A longer lease makes it rarer, " +
			"and recovery after a crash slower."}}
	case byExpiry:
		all = []Advice{{Text: "The work took longer than its lease. Let the lock renew by itself (a watchdog), ask for " +
			"a longer lease, or renew during the work; and stop working when the hold's context ends."}}
	}
	if p.a.Token > 0 && p.b.Token > 0 && p.b.Token <= p.a.Token {
		text := fmt.Sprintf("Fencing with this lock's own numbers would not have helped: token %d came after token %d.",
			p.b.Token, p.a.Token)
		if p.cause == byFailover || p.cause == byRestart {
			text += " Its counter lies beside the lock and is lost with it; tokens have to come from something that survives."
		}
		return append(all, Advice{Measured: true, Text: text})
	}
	return append(all, fencingAdvice(p.r, p.v.Class)...)
}

// adviseWithoutPair is for violations that are not about two holds.
func adviseWithoutPair(r *Run, v *checker.Violation) []Advice { return fencingAdvice(r, v.Class) }

// fencingAdvice says what fencing refused, would have refused, or could not have.
func fencingAdvice(r *Run, class checker.Class) []Advice {
	stale, refused := staleWrites(r.History)
	minted := false
	for i := range r.holds {
		minted = minted || r.holds[i].Token > 0
	}
	switch {
	case stale > 0 && refused == stale:
		return []Advice{{Measured: true, Text: fmt.Sprintf("The guarded resource checked tokens and refused %s.",
			format.Count(stale, "stale write"))}}
	case stale > 0:
		return []Advice{{Measured: true, Text: fmt.Sprintf("Fencing: had the guarded resource refused tokens older "+
			"than one already seen, it would have refused %s of this run (%d were refused).",
			format.Count(stale, "stale write"), refused)}}
	case !minted:
		return []Advice{{Text: "Fencing: this lock gives out no token. With a number that grows with every grant, checked " +
			"by what the lock protects, a late writer is refused whatever the lock believes."}}
	case class == "":
		return nil
	}
	return []Advice{{Text: "Fencing: this lock gives out tokens; what it protects must refuse tokens older than one " +
		"already seen. No late write reached the guarded resource in this run."}}
}
