package checker

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// This file compares the servers' records of an owner with its holds, at instants at which it certainly has nothing in
// flight.

// ownerLedgers are the ledgers of all owners, by owner and key.
type ownerLedgers struct {
	all   []ownerLedger
	first []int32 // by owner: its first place in all; one more at the end
}

// ownerLedger has the operations of one owner at one key, in their order. Only owners of one client are judged, if all
// their operations have a known outcome, and they do not both read and write.
type ownerLedger struct {
	ownerKey
	ops    []ledgerOp
	lease  time.Duration
	lostAt time.Duration // when its first loss was reported; never: none was
	client int
}

// ledgerOp is an operation, and how often its owner holds the lock after it: -1 from where that is not certain.
type ledgerOp struct{ span, depth int32 }

// of is the ledger of an owner at a key; nil: it has none.
func (l *ownerLedgers) of(at ownerKey) *ownerLedger {
	for _, x := range refs(l.all[l.first[at.owner]:l.first[at.owner+1]]) { // keys are at most maxWitnessed
		if x.key == at.key {
			return x
		}
	}
	return nil
}

func (s *nodeSamples) newLedgers() *ownerLedgers {
	var list []int32
	forced := make(map[int32][]int32) // by key
	for i, x := range refs(s.h.Spans) {
		switch {
		case x.Op == history.OpForceRelease && x.Outcome != history.Fail:
			forced[x.Key] = append(forced[x.Key], i)
		case (isLockOp(x) || x.Op == history.OpRenew) && s.h.Limit(x.Key) == 0:
			list = append(list, i)
		}
	}
	ops := kept.NewOperations(s.h, list)
	room, all := make([]ledgerOp, len(list)), &ownerLedgers{first: make([]int32, 1, len(s.h.Owners)+1)}
	for owner := range int32(len(s.h.Owners)) {
		for own := range ops.ByKey(owner) {
			at := ownerKey{owner, s.h.Spans[own[0]].Key}
			l := ownerLedger{ownerKey: at, client: s.client(own[0]), lostAt: never, ops: room[:0:len(own)]}
			room = room[len(own):]
			s.fill(&l, own, forced[at.key])
			all.all = append(all.all, l)
		}
		all.first = append(all.first, int32(len(all.all)))
	}
	for _, n := range refs(s.h.Notices) {
		if n.F != history.Lost {
			continue
		}
		if l := all.of(ownerKey{n.Owner, n.Key}); l != nil && n.Time < l.lostAt {
			l.lostAt = n.Time
			l.uncertainFrom(n.Time, s.h.Spans)
		}
	}
	s.restarted(all.all)
	return all
}

// fill adds the operations of an owner at a key, and the forced releases that may concern it: between its first
// operation and the time at which it last used the key, or a sample last named it there.
func (s *nodeSamples) fill(l *ownerLedger, own, forced []int32) {
	next, _ := slices.BinarySearch(forced, own[0])
	forced = forced[next:]
	for _, i := range own {
		for ; len(forced) > 0 && forced[0] < i; forced = forced[1:] {
			l.force(forced[0], s.h.Spans)
		}
		l.add(i, s.client(i), s.h.Spans)
	}
	if len(forced) == 0 {
		return
	}
	used := time.Duration(0)
	for _, x := range refsAt(s.h.Spans, own) {
		if used = max(used, x.Call); x.Outcome != history.Info {
			used = max(used, x.Return)
		}
	}
	for node, samples := range s.nodes {
		if named := s.namedIn(node, l.ownerKey, 0); len(named) > 0 {
			used = max(used, s.h.Samples[samples[named[len(named)-1].place]].Time)
		}
	}
	for ; len(forced) > 0 && s.h.Spans[forced[0]].Call <= used; forced = forced[1:] {
		l.force(forced[0], s.h.Spans)
	}
}

// restarted: if the client of an owner crashed and was started again, a record at a server may be the dead one's.
func (s *nodeSamples) restarted(all []ownerLedger) {
	first := make(map[int]time.Duration) // by client: its first crash, after which nothing is certain
	for _, n := range refs(s.h.Notices) {
		client := n.Process.Client(s.h.Clients)
		if t, before := first[client]; n.F == history.Crash && (!before || n.Time < t) {
			first[client] = n.Time
		}
	}
	for _, l := range refs(all) {
		if t, crashed := first[l.client]; crashed && s.h.Spans[l.ops[len(l.ops)-1].span].Call > t {
			l.uncertainFrom(t, s.h.Spans)
		}
	}
}

func (l *ownerLedger) add(i int32, client int, spans []history.Span) {
	s, n, depth := &spans[i], len(l.ops), int32(0)
	if n > 0 {
		depth = l.ops[n-1].depth
		if last := &spans[l.ops[n-1].span]; last.Return > s.Call || last.Write != s.Write {
			depth = -1
		}
	}
	acquires := isAcquire(s.Op)
	if acquires {
		if n > 0 && (s.Lease == 0) != (l.lease == 0) {
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
	l.ops = append(l.ops, ledgerOp{i, depth})
}

// uncertainFrom marks the instants after a reported loss as uncertain.
func (l *ownerLedger) uncertainFrom(t time.Duration, spans []history.Span) {
	for n := range l.ops {
		if n+1 == len(l.ops) || spans[l.ops[n+1].span].Return >= t {
			l.ops[n].depth = -1
		}
	}
}

// at is the last operation before a sample; false if one was in flight, or the depth since then is uncertain.
func (l *ownerLedger) at(x *history.Sample, spans []history.Span) (op ledgerOp, ok bool) {
	n := sort.Search(len(l.ops), func(n int) bool { return spans[l.ops[n].span].Call > x.Time })
	if n == 0 || l.ops[n-1].depth < 0 || spans[l.ops[n-1].span].Return > x.Sent {
		return ledgerOp{}, false
	}
	return l.ops[n-1], true
}

// wrongHold is a hold at a server that differs from its owner's hold.
type wrongHold struct {
	ledgerOp    // the owner's last one
	kind        wrongHoldKind
	value       keptKey
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
			for _, value := range s.valuesIn(i) {
				if value.owner == none || value.shared {
					continue
				}
				at := ownerKey{value.owner, value.key}
				l := ledgers.of(at)
				if l == nil || seen[at] {
					continue
				}
				k, wrong := s.compareHold(x, value, l, o)
				since := segment{s.h.Spans[k.span].Call, x.Time}
				if !wrong || o.MayBeDown == 0 && s.otherMaster(node, value.key, x.Time, o.slack()) ||
					dis.mayAffect(since, anyClient, history.AffectsData) ||
					o.MayBeDown > 0 && dis.any(segment{s.h.Spans[l.ops[0].span].Call, x.Time}, (*faultTime).keepsReleases) {
					continue
				}
				seen[at] = true
				all = append(all, k)
			}
		}
	}
	return all
}

// keepsReleases reports whether a fault may keep a server from executing a release. Full memory does not.
func (f *faultTime) keepsReleases() bool {
	return f.mayAffect(history.AffectsTraffic) || f.mayAffect(history.AffectsCommands) && !f.states(history.AffectsMemory)
}

// compareHold compares a hold at a server with its owner's hold.
func (s *nodeSamples) compareHold(x *history.Sample, value keptKey, l *ownerLedger, o Options) (k wrongHold, is bool) {
	op, ok := l.at(x, s.h.Spans)
	last := &s.h.Spans[op.span]
	k = wrongHold{ledgerOp: op, value: value, node: x.Node, seen: x.Time, since: last.Return, lease: l.lease}
	switch {
	case !ok:
		return s.leftBehind(x, k, l, o)
	case op.depth == 0:
		k.kind = heldForNobody
		released := (last.Op == history.OpRelease || last.Op == history.OpForceRelease) && o.MayBeDown == 0 &&
			x.Keys[s.h.Keys[value.key]].Session == "" // a member of an ensemble replies before it applies the latest writes
		return k, released || x.Sent-last.Return > o.slack()
	case l.lease > 0 && value.rest >= 0 && x.Sent+value.rest > later(last.Return, l.lease+o.slack()):
		k.kind = heldTooLongForLease
		return k, true
	case value.count > 0 && value.count != op.depth:
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
			format.Count(k.depth, "time"), k.value.count)
	case heldTooLongForLease:
		w.rule = "a server keeps a hold no longer than its lease"
		w.text = fmt.Sprintf("client $client holds $lock with a lease of %s, but at $end $note kept it for another %s",
			format.Duration(k.lease), format.Duration(k.value.rest))
	}
	return v.word(f, w)
}
