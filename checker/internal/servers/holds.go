package servers

import (
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// This file compares the servers' records of an owner with its holds, at instants at which it certainly has nothing in
// flight.

// ownerLedgers are the ledgers of all owners, by owner and key.
type ownerLedgers struct {
	All   []OwnerLedger
	first []int32 // by owner: its first place in all; one more at the end
}

// OwnerLedger has the operations of one owner at one key, in their order. Only owners of one client are judged, if all
// their operations have a known outcome, and they do not both read and write.
type OwnerLedger struct {
	ledger.OwnerKey
	Ops    []ledgerOp
	lease  time.Duration
	lostAt time.Duration // when its first loss was reported; never: none was
	client int
}

// ledgerOp is an operation, and how often its owner holds the lock after it: -1 from where that is not certain.
type ledgerOp struct{ Span, Depth int32 }

// Of is the ledger of an owner at a key; nil: it has none.
func (l *ownerLedgers) Of(at ledger.OwnerKey) *OwnerLedger {
	for _, x := range refs.All(l.All[l.first[at.Owner]:l.first[at.Owner+1]]) { // keys are at most maxWitnessed
		if x.Key == at.Key {
			return x
		}
	}
	return nil
}

func (s *NodeSamples) newLedgers() *ownerLedgers {
	var list []int32
	forced := make(map[int32][]int32) // by key
	for i, x := range refs.All(s.H.Spans) {
		switch {
		case x.Op == history.OpForceRelease && x.Outcome != history.Fail:
			forced[x.Key] = append(forced[x.Key], i)
		case (excuse.IsLockOp(x) || x.Op == history.OpRenew) && s.H.Limit(x.Key) == 0:
			list = append(list, i)
		}
	}
	ops := kept.NewOperations(s.H, list)
	room, all := make([]ledgerOp, len(list)), &ownerLedgers{first: make([]int32, 1, len(s.H.Owners)+1)}
	for owner := range int32(len(s.H.Owners)) {
		for own := range ops.ByKey(owner) {
			at := ledger.OwnerKey{Owner: owner, Key: s.H.Spans[own[0]].Key}
			l := OwnerLedger{OwnerKey: at, client: s.Client(own[0]), lostAt: segment.Never, Ops: room[:0:len(own)]}
			room = room[len(own):]
			s.fill(&l, own, forced[at.Key])
			all.All = append(all.All, l)
		}
		all.first = append(all.first, int32(len(all.All)))
	}
	for _, n := range refs.All(s.H.Notices) {
		if n.F != history.Lost {
			continue
		}
		if l := all.Of(ledger.OfNotice(n)); l != nil && n.Time < l.lostAt {
			l.lostAt = n.Time
			l.uncertainFrom(n.Time, s.H.Spans)
		}
	}
	s.restarted(all.All)
	return all
}

// fill adds the operations of an owner at a key, and the forced releases that may concern it: between its first
// operation and the time at which it last used the key, or a sample last named it there.
func (s *NodeSamples) fill(l *OwnerLedger, own, forced []int32) {
	next, _ := slices.BinarySearch(forced, own[0])
	forced = forced[next:]
	for _, i := range own {
		for ; len(forced) > 0 && forced[0] < i; forced = forced[1:] {
			l.force(forced[0], s.H.Spans)
		}
		l.add(i, s.Client(i), s.H.Spans)
	}
	if len(forced) == 0 {
		return
	}
	used := time.Duration(0)
	for _, x := range refs.At(s.H.Spans, own) {
		if used = max(used, x.Call); x.Outcome != history.Info {
			used = max(used, x.Return)
		}
	}
	for node, samples := range s.Nodes {
		if named := s.NamedIn(node, l.OwnerKey, 0); len(named) > 0 {
			used = max(used, s.H.Samples[samples[named[len(named)-1].Place]].Time)
		}
	}
	for ; len(forced) > 0 && s.H.Spans[forced[0]].Call <= used; forced = forced[1:] {
		l.force(forced[0], s.H.Spans)
	}
}

// restarted: if the client of an owner crashed and was started again, a record at a server may be the dead one's.
func (s *NodeSamples) restarted(all []OwnerLedger) {
	first := make(map[int]time.Duration) // by client: its first crash, after which nothing is certain
	for _, n := range refs.All(s.H.Notices) {
		client := n.Process.Client(s.H.Clients)
		if t, before := first[client]; n.F == history.Crash && (!before || n.Time < t) {
			first[client] = n.Time
		}
	}
	for _, l := range refs.All(all) {
		if t, crashed := first[l.client]; crashed && s.H.Spans[l.Ops[len(l.Ops)-1].Span].Call > t {
			l.uncertainFrom(t, s.H.Spans)
		}
	}
}

func (l *OwnerLedger) add(i int32, client int, spans []history.Span) {
	s, n, depth := &spans[i], len(l.Ops), int32(0)
	if n > 0 {
		depth = l.Ops[n-1].Depth
		if last := &spans[l.Ops[n-1].Span]; last.Return > s.Call || last.Write != s.Write {
			depth = -1
		}
	}
	acquires := excuse.IsAcquire(s.Op)
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
	l.Ops = append(l.Ops, ledgerOp{i, depth})
}

// uncertainFrom marks the instants after a reported loss as uncertain.
func (l *OwnerLedger) uncertainFrom(t time.Duration, spans []history.Span) {
	for n := range l.Ops {
		if n+1 == len(l.Ops) || spans[l.Ops[n+1].Span].Return >= t {
			l.Ops[n].Depth = -1
		}
	}
}

// at is the last operation before a sample; false if one was in flight, or the depth since then is uncertain.
func (l *OwnerLedger) at(x *history.Sample, spans []history.Span) (op ledgerOp, ok bool) {
	n := sort.Search(len(l.Ops), func(n int) bool { return spans[l.Ops[n].Span].Call > x.Time })
	if n == 0 || l.Ops[n-1].Depth < 0 || spans[l.Ops[n-1].Span].Return > x.Sent {
		return ledgerOp{}, false
	}
	return l.Ops[n-1], true
}

// WrongHold is a hold at a server that differs from its owner's hold.
type WrongHold struct {
	ledgerOp    // the owner's last one
	Kind        WrongHoldKind
	Value       keptKey
	Node        string
	Seen, Since time.Duration
	Lease       time.Duration
}

type WrongHoldKind uint8

const (
	HeldForNobody WrongHoldKind = iota // its owner has released it, or was refused
	HeldMiscounted
	HeldTooLongForLease // until later than the lease that was requested allows
	HeldLeftBehind      // its owner gave it up, see [NodeSamples.leftBehind]
)

// findWrongHolds finds holds at servers that differ from the holds of their owners. A fault that may change the data of
// servers excuses differences seen since the owner's last operation. A reply that an acquire failed or a release
// succeeded is final, whatever the network does; but of a quorum, a minority may be unreachable, or refuse all
// requests, since the owner's first operation.
func (s *NodeSamples) findWrongHolds(o given.Options) (all []WrongHold) {
	ledgers, dis := s.Ledgers(), s.AllDisturbances(o)
	seen := make(map[ledger.OwnerKey]bool)
	for node, samples := range s.Nodes {
		for i, x := range refs.At(s.H.Samples, samples) {
			for _, value := range s.valuesIn(i) {
				if value.owner == refs.None || value.shared {
					continue
				}
				at := ledger.OwnerKey{Owner: value.owner, Key: value.key}
				l := ledgers.Of(at)
				if l == nil || seen[at] {
					continue
				}
				k, wrong := s.compareHold(x, value, l, o)
				since := segment.Of(s.H.Spans[k.Span].Call, x.Time)
				if !wrong || o.MayBeDown == 0 && s.OtherMaster(node, value.key, x.Time, o.Slack()) ||
					dis.MayAffect(since, excuse.AnyClient, history.AffectsData) ||
					o.MayBeDown > 0 && dis.Any(segment.Of(s.H.Spans[l.Ops[0].Span].Call, x.Time), keepsReleases) {
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
func keepsReleases(f *excuse.FaultTime) bool {
	return f.MayAffect(history.AffectsTraffic) || f.MayAffect(history.AffectsCommands) && !f.States(history.AffectsMemory)
}

// compareHold compares a hold at a server with its owner's hold.
func (s *NodeSamples) compareHold(x *history.Sample, value keptKey, l *OwnerLedger, o given.Options) (k WrongHold,
	is bool) {
	op, ok := l.at(x, s.H.Spans)
	last := &s.H.Spans[op.Span]
	k = WrongHold{ledgerOp: op, Value: value, Node: x.Node, Seen: x.Time, Since: last.Return, Lease: l.lease}
	switch {
	case !ok:
		return s.leftBehind(x, k, l, o)
	case op.Depth == 0:
		k.Kind = HeldForNobody
		released := (last.Op == history.OpRelease || last.Op == history.OpForceRelease) && o.MayBeDown == 0 &&
			x.Keys[s.H.Keys[value.key]].Session == "" // a member of an ensemble replies before it applies the latest writes
		return k, released || x.Sent-last.Return > o.Slack()
	case l.lease > 0 && value.Rest >= 0 && x.Sent+value.Rest > segment.Later(last.Return, l.lease+o.Slack()):
		k.Kind = HeldTooLongForLease
		return k, true
	case value.Count > 0 && value.Count != op.Depth:
		k.Kind = HeldMiscounted
		h, held := s.LastHold(last.Owner, last.Key, x.Sent)
		return k, held && o.MayBeDown == 0 && s.Holds[h].PromisedAt(x.Sent)
	}
	return k, false
}

// force applies forced release i to the holds of one owner.
func (l *OwnerLedger) force(i int32, spans []history.Span) {
	depth, last := int32(-1), l.Ops[len(l.Ops)-1]
	if spans[i].Outcome == history.OK && last.Depth >= 0 && spans[last.Span].Return <= spans[i].Call {
		depth = 0
	}
	l.Ops = append(l.Ops, ledgerOp{i, depth})
}
