package reports

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
)

// advise lists what would have prevented the overlap, by its cause.
func (p *pair) advise() []adviceItem {
	var all []adviceItem
	switch p.cause {
	case byFailover:
		all = []adviceItem{
			{Text: "Make a grant wait for replicas: send `WAIT k` on the connection of the write (on another connection it " +
				"waits for other writes), and release the lock if fewer than k replicas acknowledge it. This narrows the " +
				"window; if a replica outside those k is promoted, the lock is still lost."},
			{Text: "Do not rely on one master: a quorum of independent masters, with `appendfsync always` or with restarts " +
				"delayed by more than the longest lease, survives the loss of any minority."},
		}
	case byRestart:
		all = []adviceItem{{Text: "A node that forgets its grants breaks the lock: use `appendfsync always`, or keep a " +
			"restarted node away from clients for longer than the longest lease (the delayed restart of Redlock)."}}
	case byStall:
		all = []adviceItem{{Text: "No lease can prevent this: a paused client cannot notice that its lease has expired, " +
			"and its watchdog is paused with it (Kleppmann 2016). A longer lease makes it rarer, " +
			"but slows recovery after a crash."}}
	case byExpiry:
		all = []adviceItem{{Text: "The work took longer than the lease. Renew the lock automatically (a watchdog) or " +
			"during the work, or request a longer lease; and stop working when the context of the hold ends."}}
	}
	if p.a.Token > 0 && p.b.Token > 0 && p.b.Token <= p.a.Token {
		text := fmt.Sprintf("Fencing with this lock's tokens would not have helped: token %d was granted after token %d.",
			p.b.Token, p.a.Token)
		if p.cause == byFailover || p.cause == byRestart {
			text += " Its counter is stored beside the lock and is lost with it; fencing needs a counter that survives."
		}
		return append(all, adviceItem{Measured: true, Text: text})
	}
	return append(all, fencingAdvice(p.r, p.v.Class)...)
}

// fencingAdvice says which writes fencing rejected, would have rejected, or could not have.
func fencingAdvice(r *Run, class checker.Class) []adviceItem {
	stale, rejected := staleWrites(r.History)
	tokens := false
	for i := range r.holds {
		tokens = tokens || r.holds[i].Token > 0
	}
	switch {
	case stale > 0 && rejected == stale:
		return []adviceItem{{Measured: true, Text: fmt.Sprintf("The guarded resource checked tokens and rejected %s.",
			format.Count(stale, "stale write"))}}
	case stale > 0:
		return []adviceItem{{Measured: true, Text: fmt.Sprintf("Fencing: a resource that rejects tokens older than one "+
			"already seen would have rejected %s of this run (rejected: %s).",
			format.Count(stale, "stale write"), format.Number(rejected))}}
	case class == "": // not an overlap, such as a waiter that was never woken
		return nil
	case !tokens:
		return []adviceItem{{Text: "Fencing: this lock issues no token. With a number that grows with every grant, " +
			"checked by the guarded resource, a late write is rejected whatever the lock believes."}}
	}
	return []adviceItem{{Text: "Fencing: this lock issues tokens; the guarded resource must reject tokens older than " +
		"one already seen. In this run no late write reached it."}}
}
