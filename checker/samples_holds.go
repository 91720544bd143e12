package checker

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// This file compares the servers' records of an owner with its holds, at instants at which it certainly has nothing in
// flight.

// ownerLedger has the operations of one owner at one key, in their order. Only owners of one client are judged, if all
// their operations have a known outcome, and they do not both read and write.
type ownerLedger struct {
	ops    []int32
	depths []int32 // after each of ops; -1 from where it is not certain
	lease  time.Duration
	used   time.Duration // see lastUses
	lostAt time.Duration // when its first loss was reported; never: none was
	client int
}

func (s *nodeSamples) newLedgers() map[ownerKey]*ownerLedger {
	all := make(map[ownerKey]*ownerLedger)
	used := s.lastUses()
	live := make(map[int32][]*ownerLedger) // by key: owners whom a forced release may concern
	for i, x := range refs(s.h.Spans) {
		if x.Op == history.OpForceRelease && x.Outcome != history.Fail {
			live[x.Key] = slices.DeleteFunc(live[x.Key], func(l *ownerLedger) bool {
				if l.used < x.Call {
					return true
				}
				l.force(i, x, s.h.Spans)
				return false
			})
		}
		if !isLockOp(x) && x.Op != history.OpRenew || s.h.Limit(x.Key) != 0 {
			continue
		}
		at := ownerKey{x.Owner, x.Key}
		l := all[at]
		if l == nil {
			l = &ownerLedger{client: s.client(i), lostAt: never, used: used[at]}
			all[at] = l
			if used != nil {
				live[x.Key] = append(live[x.Key], l)
			}
		}
		l.add(i, x, s.client(i), s.h.Spans)
	}
	for _, n := range refs(s.h.Notices) {
		if n.F != history.Lost {
			continue
		}
		if l := all[ownerKey{n.Owner, n.Key}]; l != nil && n.Time < l.lostAt {
			l.lostAt = n.Time
			l.uncertainFrom(n.Time, s.h.Spans)
		}
	}
	s.restarted(all)
	return all
}

// lastUses are the instants at which owners last used a key, or a sample last named them there; nil: no lock was
// released by force, so that nobody asks for them.
func (s *nodeSamples) lastUses() map[ownerKey]time.Duration {
	if !s.hasRare(func(x *history.Span) bool { return x.Op == history.OpForceRelease }) {
		return nil
	}
	used := make(map[ownerKey]time.Duration)
	for _, n := range s.naming() {
		at := ownerKey{n.owner, n.key}
		used[at] = max(used[at], s.h.Samples[s.nodes[n.node][n.place]].Time)
	}
	for _, x := range refs(s.h.Spans) {
		at, until := ownerKey{x.Owner, x.Key}, x.Return
		if x.Outcome == history.Info {
			until = x.Call
		}
		if isLockOp(x) || x.Op == history.OpRenew {
			used[at] = max(used[at], until)
		}
	}
	return used
}

// restarted: if the client of an owner crashed and was started again, a record at a server may be the dead one's.
func (s *nodeSamples) restarted(all map[ownerKey]*ownerLedger) {
	first := make(map[int]time.Duration) // by client: its first crash, after which nothing is certain
	for _, n := range refs(s.h.Notices) {
		client := n.Process.Client(s.h.Clients)
		if t, before := first[client]; n.F == history.Crash && (!before || n.Time < t) {
			first[client] = n.Time
		}
	}
	for _, l := range all { // in any order: each is treated alike
		if t, crashed := first[l.client]; crashed && s.h.Spans[l.ops[len(l.ops)-1]].Call > t {
			l.uncertainFrom(t, s.h.Spans)
		}
	}
}

func (l *ownerLedger) add(i int32, s *history.Span, client int, spans []history.Span) {
	depth := int32(0)
	if n := len(l.depths); n > 0 {
		depth = l.depths[n-1]
		if last := &spans[l.ops[n-1]]; last.Return > s.Call || last.Write != s.Write {
			depth = -1
		}
	}
	acquires := isAcquire(s.Op)
	if acquires {
		if n := len(l.depths); n > 0 && (s.Lease == 0) != (l.lease == 0) {
			l.lease = 0
		} else {
			l.lease = max(l.lease, s.Lease)
		}
	}
	if s.Op == history.OpRenew && l.lease > 0 {
		l.lease = max(l.lease, s.Lease) // a renewal may ask for more
	}
	switch {
	case depth < 0, client != l.client, s.Outcome == history.Info:
		depth = -1
	case s.Outcome == history.OK && acquires:
		depth++
	case s.Outcome == history.OK && s.Op == history.OpRelease:
		depth--
	case s.Outcome == history.Fail && !acquires:
		depth = -1 // the remaining levels are not certain
	}
	l.ops, l.depths = append(l.ops, i), append(l.depths, depth)
}

// uncertainFrom marks the instants after a reported loss as uncertain.
func (l *ownerLedger) uncertainFrom(t time.Duration, spans []history.Span) {
	for n := range l.ops {
		if n+1 == len(l.ops) || spans[l.ops[n+1]].Return >= t {
			l.depths[n] = -1
		}
	}
}

// at is the last operation before a sample, and the depth since then; false if one was in flight, or it is uncertain.
func (l *ownerLedger) at(x *history.Sample, spans []history.Span) (op, depth int32, ok bool) {
	n := sort.Search(len(l.ops), func(n int) bool { return spans[l.ops[n]].Call > x.Time })
	if n == 0 || l.depths[n-1] < 0 || spans[l.ops[n-1]].Return > x.Sent {
		return 0, 0, false
	}
	return l.ops[n-1], l.depths[n-1], true
}

// wrongHold is a hold at a server that differs from its owner's hold.
type wrongHold struct {
	kind        wrongHoldKind
	span        int32 // the owner's last operation
	depth       int32 // of the owner's hold
	state       history.KeyState
	node        string
	seen, since time.Duration
	lease       time.Duration
}

type wrongHoldKind uint8

const (
	heldForNobody wrongHoldKind = iota // its owner has released it, or was refused
	heldMiscounted
	heldTooLongForLease // until later than the lease that was requested allows
	heldLeftBehind      // its owner gave it up, see [nodeSamples.leftBehind]
)

// findWrongHolds finds holds at servers that differ from the holds of their owners. A fault that may change the data of
// servers excuses differences seen since the owner's last operation. A reply that an acquire failed or a release
// succeeded is final, whatever the network does; but of a quorum, a minority may be unreachable, or refuse all
// requests, since the owner's first operation.
func (s *nodeSamples) findWrongHolds(o Options) (all []wrongHold) {
	ledgers, dis := s.ledgers(), s.allDisturbances(o)
	seen := make(map[ownerKey]bool)
	for node, samples := range s.nodes {
		for i, x := range refsAt(s.h.Samples, samples) {
			for _, kept := range s.valuesIn(i) {
				if kept.owner == none || kept.shared {
					continue
				}
				at := ownerKey{kept.owner, kept.key}
				l := ledgers[at]
				if l == nil || seen[at] {
					continue
				}
				k, wrong := s.compareHold(x, x.Keys[s.h.Keys[kept.key]], l, o)
				since := segment{s.h.Spans[k.span].Call, x.Time}
				if !wrong || o.MayBeDown == 0 && s.otherMaster(node, kept.key, x.Time, o.slack()) ||
					dis.mayAffect(since, anyClient, history.AffectsData) ||
					o.MayBeDown > 0 && dis.any(l.since(s.h.Spans, x.Time), (*faultTime).keepsReleases) {
					continue
				}
				seen[at] = true
				all = append(all, k)
			}
		}
	}
	return all
}

// since is the time from the owner's first operation until t.
func (l *ownerLedger) since(spans []history.Span, t time.Duration) segment {
	return segment{spans[l.ops[0]].Call, t}
}

// keepsReleases reports whether a fault may keep a server from executing a release. Full memory does not.
func (f *faultTime) keepsReleases() bool {
	return f.mayAffect(history.AffectsTraffic) || f.mayAffect(history.AffectsCommands) && !f.states(history.AffectsMemory)
}

// compareHold compares a hold at a server with its owner's hold.
func (s *nodeSamples) compareHold(
	x *history.Sample, state history.KeyState, l *ownerLedger, o Options,
) (k wrongHold, wrong bool) {
	op, depth, ok := l.at(x, s.h.Spans)
	last := &s.h.Spans[op]
	k = wrongHold{span: op, depth: depth, state: state, node: x.Node, seen: x.Time, since: last.Return, lease: l.lease}
	switch {
	case !ok:
		return s.leftBehind(x, k, l, o)
	case depth == 0:
		k.kind = heldForNobody
		released := (last.Op == history.OpRelease || last.Op == history.OpForceRelease) && o.MayBeDown == 0
		return k, released || x.Sent-last.Return > o.slack()
	case l.lease > 0 && state.TTL >= 0 && x.Sent+state.TTL > later(last.Return, l.lease+o.slack()):
		k.kind = heldTooLongForLease
		return k, true
	case state.Count > 0 && int32(state.Count) != depth && state.Mode == "":
		k.kind = heldMiscounted
		h, held := s.lastHold(last.Owner, last.Key, x.Sent)
		return k, held && o.MayBeDown == 0 && s.holds[h].promisedAt(x.Sent)
	}
	return k, false
}

// addWrongHolds adds the findings of one kind about holds at servers.
func (v *view) addWrongHolds(kind wrongHoldKind, rule int, found *findings) {
	seen := v.samples()
	if seen == nil {
		return
	}
	for _, k := range seen.wrongHolds() {
		if k.kind == kind {
			found.add(finding{rule: rule, x: none, y: k.span, start: k.since, end: k.seen, note: k})
		}
	}
}

// wrongHoldViolation describes a finding about a hold at a server.
func (v *view) wrongHoldViolation(f finding) Violation {
	k, op := f.note.(wrongHold), v.h.Spans[f.y].Op
	f.note = k.node
	w := wording{class: BrokenPromise}
	switch did := "was refused"; k.kind {
	case heldLeftBehind:
		did = either(op == history.OpRelease, "requested to release", "gave up its acquire of")
		w.rule = "a lock that retries releases leaves no hold on a server that replies"
		w.text = "client $client " + did + " $lock at $start, but at $end $note still kept it for that owner"
	case heldForNobody:
		switch op {
		case history.OpRelease:
			did = "released"
		case history.OpForceRelease:
			did = "released by force"
		}
		w.rule = "a server does not keep a hold that was released or refused"
		w.text = "client $client " + did + " $lock at $start, but at $end $note kept it for that owner"
	case heldMiscounted:
		w.rule = "the hold count on a server equals the owner's hold count"
		w.text = fmt.Sprintf("client $client held $lock %s, but at $end its hold count at $note was %d",
			format.Count(k.depth, "time"), k.state.Count)
	case heldTooLongForLease:
		w.rule = "a server keeps a hold no longer than its lease"
		w.text = fmt.Sprintf("client $client holds $lock with a lease of %s, but at $end $note kept it for another %s",
			format.Duration(k.lease), format.Duration(k.state.TTL))
	}
	return v.word(f, w)
}
