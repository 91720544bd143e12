package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeOwnGrants finds the acquires that waited for their own grant. A server had granted such an acquire, because its
// client had something to undo, and its wait ran out although no other client can have held the key for longer
// than the slack of it: the lock has refused the request that was sent again after a lost reply. What an acquire that
// failed left in the queue may be in the way until it is removed. On a quorum, votes may be missing.
func (v *view) judgeOwnGrants(o Options, found *findings) {
	if o.MayBeDown > 0 {
		return
	}
	several := v.severalKeys()
	for _, i := range v.h.TimedOut {
		s := &v.h.Spans[i]
		least, _ := v.sizesIn(s.Key, segment{s.Call, s.Return})
		fits := v.h.Limit(s.Key) == 0 || int64(s.Permits) <= least
		if !s.Undone || s.Part || several[i] != nil || s.Return-s.Call <= o.slack() || !fits {
			continue
		}
		p := longestOutside(segment{s.Call, s.Return}, merged(v.othersAt(i, o), v.clientPauses()[v.client(i)]))
		if p.until-p.from > o.slack() {
			found.add(finding{rule: ownGrant, x: none, y: i, start: p.from, end: p.until})
		}
	}
}

// othersAt are the times in which an acquire may have had to wait for others, or for a server.
func (v *view) othersAt(i int32, o Options) (all []segment) {
	s, e, dis := &v.h.Spans[i], v.idleTimes(o.slack()).extents, v.disturbances(o)
	for _, n := range e.byKey[s.Key] {
		h := &e.holds[n]
		until := h.freeBy
		if until == never || h.ambiguous {
			until = e.leaseEnd(n)
		}
		all = append(all, segment{h.from, until})
	}
	for _, x := range e.possible[s.Key] {
		if x.last != i || x.cause != afterUnknownAcquire {
			all = append(all, x.segment)
		}
	}
	for n := range v.h.Spans {
		x := &v.h.Spans[n]
		if x.Key == s.Key && x.Op == history.OpAcquire && x.Outcome == history.Fail && int32(n) != i && x.Return < s.Return &&
			dis.touch(segment{x.Call, later(x.Return, o.slack())}, v.client(int32(n)), history.AffectsData,
				history.AffectsTraffic, history.AffectsCommands, history.AffectsClients) {
			all = append(all, segment{x.Return, e.dequeued(int32(n))})
		}
	}
	return merged(v.outages(o).windows, all)
}

// ownGrantViolation words a finding of this file.
func (v *view) ownGrantViolation(f finding) Violation {
	s := &v.h.Spans[f.y]
	w := v.spanViolation(f.y, "an acquire does not wait for its own grant", "")
	w.Class = ""
	w.Text = fmt.Sprintf("client %d waited for %s until %s, and returned what it had been granted, although no other "+
		"client can have held it %s", w.Clients[0], lockName(w.Key), format.Instant(s.Return), segment{f.start, f.end}.text())
	return w
}
