package linear

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
)

// KeyOps is one key's part of the history.
type KeyOps struct {
	key            int32
	Kind           search.Kind
	Permits        int32             // of a semaphore
	Spans          []int32           // lock operations, by invocation
	Busy           []int32           // tries that failed because the lock was held
	undone         []segment.Segment // when failed acquires, or the remains of lost holds, may have held the lock
	Unknown        time.Duration     // when the first acquire of unknown outcome was invoked
	unknownNoLease time.Duration     // the same, of acquires without a lease
	unknownLeased  []time.Duration   // when acquires with a lease were invoked
	ownLeases      bool              // the lock has a lease where none is requested, or is a semaphore
	Orphans        []int32
	Renumbered     []int32             // re-entries with another token than their hold's
	regrants       []int32             // grants to the holder
	epochs         epochs              // set by prepare
	Drops          []search.Op         // set by prepare
	dropped        []int32             // event of each drop; set by prepare
	permitHolds    []permitHold        // of a semaphore; set by prepare
	Exact          bool                // the sweep decides
	Unjudgeable    bool                // the holds of one of its owners are unknown
	unjudgeableWhy ledger.UnknownCause // why, for the first such owner
	entered        []int32             // owners that may have entered a lost hold again: servers may count one level more

	readers, manyPermits, tokens, ambiguous bool
	ownerModes                              map[int32]ledger.Usage // of owners that act after an unknown outcome
}

// KeyedOps groups the lock operations by key, in linear time. Which kind of lock a key is, is inferred from its
// requests and replies.
func KeyedOps(v *bounds.View) []KeyOps {
	keys := make([]KeyOps, len(v.H.Keys))
	count := make([]int32, len(keys)) // a list that grows would need more memory
	ownLeases := v.Lapses != nil
	// By key: it may have been released by force, or a try for all permits may have got some.
	forced := make(map[int32]bool)
	for _, s := range refs.All(v.H.Spans) {
		if s.Op == history.OpForceRelease && s.Outcome != history.Fail ||
			s.Op == history.OpTry && s.Outcome == history.Info && s.Permits > 1 && s.Permits == s.Asked {
			forced[s.Key] = true
		}
		if excuse.IsLockOp(s) {
			count[s.Key]++
			ownLeases = ownLeases || s.Lease == 0 && s.Valid != 0 && s.Op != history.OpRelease
		}
	}
	for k := range keys {
		keys[k] = KeyOps{key: int32(k), Exact: true, Unknown: segment.Never, unknownNoLease: segment.Never,
			ownLeases: ownLeases || v.H.Limit(int32(k)) > 0, Spans: make([]int32, 0, count[k])}
	}
	for i, s := range refs.All(v.H.Spans) {
		if excuse.IsLockOp(s) {
			k := &keys[s.Key]
			k.Spans = append(k.Spans, i)
			k.count(i, s, v.OwnerOrder[s.Owner], v.UnknownWhy[s.Owner])
		}
	}
	for _, h := range refs.All(v.Holds) {
		if h.Remains && v.OwnerOrder[h.Owner] == ledger.OrdAfterUnknown {
			keys[h.Key].entered = append(keys[h.Key].entered, h.Owner)
		}
		if h.Remains && h.Core < segment.Never {
			keys[h.Key].undone = append(keys[h.Key].undone, segment.Of(h.Core, segment.Never))
		}
	}
	for k := range keys {
		if v.Lapses != nil {
			keys[k].undone = append(keys[k].undone, v.Lapses.After[k]...)
		}
		if keys[k].readers && len(keys[k].Busy) > 0 {
			keys[k].undone = append(keys[k].undone, writesLeft(v, v.ByKey[k])...)
		}
	}
	for i := range keys {
		keys[i].Busy = withoutUndone(v, keys[i].Busy, keys[i].undone)
	}
	for _, i := range v.Orphans {
		k := &keys[v.H.Spans[i].Key]
		k.Orphans = append(k.Orphans, i)
	}
	for _, i := range v.Renumbered {
		k := &keys[v.H.Spans[i].Key]
		k.Renumbered = append(k.Renumbered, i)
	}
	for _, i := range v.Regrants {
		k := &keys[v.H.Spans[i].Key]
		k.regrants = append(k.regrants, i)
	}
	for i, k := range refs.All(keys) {
		k.Permits = v.H.Limit(k.key)
		_, resized := v.Resizes()[k.key]
		lapsed := v.Lapses != nil && len(v.Lapses.After[k.key]) > 0
		// the model has one size, no part of a request, and no permits whose lease ended at an unknown time
		if resized || k.Permits > 0 && (forced[k.key] || lapsed) {
			k.Permits = history.UnknownLimit
		}
		k.inferKind(v.Usage[i], v.Kind)
	}
	return keys
}

// leased reports whether the hold of acquire s, of unknown outcome, ends without a release in the history: with its
// lease or, in a semaphore, because the client takes it back later.
func (k *KeyOps) leased(s *history.Span) bool { return s.Lease > 0 || k.ownLeases }

func (k *KeyOps) count(i int32, s *history.Span, of ledger.ProgramOrder, why ledger.UnknownCause) {
	k.Exact = k.Exact && of == ledger.OrdSequential
	if of == ledger.OrdUnknown && !k.Unjudgeable {
		k.Unjudgeable, k.unjudgeableWhy = true, why
	}
	k.readers = k.readers || !s.Write
	k.manyPermits = k.manyPermits || s.Permits > 1
	if of != ledger.OrdSequential && !s.Busy && s.Op != history.OpRelease {
		k.mode(s)
	}
	// A try may also have been granted before: the reply was lost, and the lease of that grant ended.
	if s.Undone || s.Op == history.OpTry && s.Valid > 0 && s.Return-s.Call > max(s.Lease, s.Valid-s.Return) {
		k.undone = append(k.undone, segment.Of(s.Call, s.Return))
	}
	switch {
	case s.Undone && s.Outcome == history.Fail:
	case s.Busy:
		k.Busy = append(k.Busy, i)
	case s.Op == history.OpRelease:
	case s.Outcome == history.Info:
		k.Unknown = min(k.Unknown, s.Call)
		if k.leased(s) {
			k.unknownLeased = append(k.unknownLeased, s.Call)
		} else {
			k.unknownNoLease = min(k.unknownNoLease, s.Call)
		}
	case s.Outcome == history.OK:
		k.tokens = k.tokens || s.Token != 0
	}
}

// mode records whether an owner that may hold more than is known reads or writes.
func (k *KeyOps) mode(s *history.Span) {
	if k.ownerModes == nil {
		k.ownerModes = make(map[int32]ledger.Usage)
	}
	m := ledger.UsageNested
	if s.Write {
		m = ledger.UsageMixed
	}
	k.ownerModes[s.Owner] |= m
	k.ambiguous = k.ambiguous || k.ownerModes[s.Owner] == ledger.UsageNested|ledger.UsageMixed
}

// inferKind infers the kind of lock. An owner that acts again after an acquire of unknown outcome may have re-entered.
// The intended kind decides where the history leaves it open.
func (k *KeyOps) inferKind(t ledger.Usage, meant property.LockKind) {
	many := k.manyPermits || k.Permits != 0
	deep := t&ledger.UsageNested != 0 || (!k.Exact && k.Unknown != segment.Never)
	switch meant {
	case property.Mutex:
		deep = false
	case property.Reentrant:
		deep = true
	case property.ReadersWriterLock:
		k.readers = k.readers || !many
	}
	switch {
	case k.readers && (many || k.ambiguous || t&ledger.UsageMixed != 0), many && k.Permits <= 0:
		k.Kind = search.Unmodelled
	case many:
		k.Kind = search.Semaphore
	case k.readers:
		k.Kind = search.ReadersWriter
	case k.tokens && deep:
		k.Kind = search.ReentrantFenced
	case k.tokens:
		k.Kind = search.FencedMutex
	case deep:
		k.Kind = search.ReentrantMutex
	}
	if k.Kind.Shared() && len(k.Busy) > 0 {
		k.Exact = false
	}
}

// Prepare fills in the facts about lost holds that the search needs.
func Prepare(v *bounds.View, k *KeyOps) {
	if k.Kind == search.Semaphore {
		preparePermits(v, k)
		return
	}
	holds := v.ByKey[k.key]
	for n := 1; n < len(holds) && len(k.Busy) > 0 && k.Exact; n++ {
		k.Exact = !tied(v, holds[n-1], holds[n])
	}
	k.epochs = ownerEpochs(v, k.key)
	k.Drops, k.dropped = nil, nil
	for _, h := range refs.At(v.Holds, holds) {
		if h.Ending == ledger.EndLost {
			k.dropped = append(k.dropped, h.EndEvent)
			k.Drops = append(k.Drops, search.Op{Call: h.Core, Return: segment.Never, Owner: h.Owner,
				Epoch: k.epochs.of(h.Owner, h.EndEvent),
				Span:  -1, Process: v.H.Spans[h.Span].Process, Kind: search.OpHoldLost, Unknown: true, Depth: -1})
		}
	}
}

// writesLeft are the times after the losses of writes whose owners were granted a read later: servers may have kept the
// write until its lease ended, let its owner read inside it, and refused others.
func writesLeft(v *bounds.View, holds []int32) (all []segment.Segment) {
	var lost map[int32]time.Duration // by owner
	for _, h := range refs.At(v.Holds, holds) {
		if core, is := lost[h.Owner]; h.Reader && is && core < h.From {
			all = append(all, segment.Of(core, segment.Never))
		}
		if !h.Reader && h.Ending == ledger.EndLost {
			if lost == nil {
				lost = make(map[int32]time.Duration)
			}
			lost[h.Owner] = h.Core
		}
	}
	return all
}

// epochs are, by owner, the grants that came after a lost hold, as event indices. A later grant begins a new hold, and
// the remains of the old one at the servers neither extend nor end it: to the model it is another owner.
type epochs map[int32][]int32

func ownerEpochs(v *bounds.View, key int32) epochs {
	var l epochs
	var lost map[int32]bool
	for _, h := range refs.At(v.Holds, v.ByKey[key]) {
		if h.Ending != ledger.EndLost && lost == nil {
			continue
		}
		if lost == nil {
			l, lost = make(epochs), make(map[int32]bool)
		}
		if lost[h.Owner] {
			l[h.Owner] = append(l[h.Owner], int32(v.Granted(h)))
		}
		if h.Ending == ledger.EndLost || lost[h.Owner] {
			lost[h.Owner] = h.Ending == ledger.EndLost
		}
	}
	return l
}

// of is the epoch of an event.
func (l epochs) of(owner, event int32) (n int32) {
	for _, grant := range l[owner] {
		if grant <= event {
			n++
		}
	}
	return n
}

// begin begins a new epoch of an owner with a grant.
func (l epochs) begin(owner, event int32) {
	if !slices.Contains(l[owner], event) {
		l[owner] = append(l[owner], event)
	}
}
