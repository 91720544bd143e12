package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
)

// keyOps is one key's part of the history.
type keyOps struct {
	key            int32
	kind           search.Kind
	permits        int32           // of a semaphore
	spans          []int32         // lock operations, by invocation
	busy           []int32         // tries that failed because the lock was held
	undone         []segment       // when failed acquires, or the remains of lost holds, may have held the lock
	unknown        time.Duration   // when the first acquire of unknown outcome was invoked
	unknownNoLease time.Duration   // the same, of acquires without a lease
	unknownLeased  []time.Duration // when acquires with a lease were invoked
	ownLeases      bool            // the lock has a lease where none is requested, or is a semaphore
	orphans        []int32
	renumbered     []int32      // re-entries with another token than their hold's
	regrants       []int32      // grants to the holder
	epochs         epochs       // set by prepare
	drops          []search.Op  // set by prepare
	dropped        []int32      // event of each drop; set by prepare
	permitHolds    []permitHold // of a semaphore; set by prepare
	exact          bool         // the sweep decides
	unjudgeable    bool         // the holds of one of its owners are unknown
	unjudgeableWhy unknownCause // why, for the first such owner
	entered        []int32      // owners that may have entered a lost hold again: servers may count one level more

	readers, manyPermits, tokens, ambiguous bool
	ownerModes                              map[int32]usage // of owners that act after an unknown outcome
}

// keyedOps groups the lock operations by key, in linear time. Which kind of lock a key is, is inferred from its
// requests and replies.
func (v *view) keyedOps() []keyOps {
	keys := make([]keyOps, len(v.h.Keys))
	count := make([]int32, len(keys)) // a list that grows would need more memory
	ownLeases := v.lapses != nil
	// By key: it may have been released by force, or a try for all permits may have got some.
	forced := make(map[int32]bool)
	for _, s := range refs(v.h.Spans) {
		if s.Op == history.OpForceRelease && s.Outcome != history.Fail ||
			s.Op == history.OpTry && s.Outcome == history.Info && s.Permits > 1 && s.Permits == s.Asked {
			forced[s.Key] = true
		}
		if isLockOp(s) {
			count[s.Key]++
			ownLeases = ownLeases || s.Lease == 0 && s.Valid != 0 && s.Op != history.OpRelease
		}
	}
	for k := range keys {
		keys[k] = keyOps{key: int32(k), exact: true, unknown: never, unknownNoLease: never,
			ownLeases: ownLeases || v.h.Limit(int32(k)) > 0, spans: make([]int32, 0, count[k])}
	}
	for i, s := range refs(v.h.Spans) {
		if isLockOp(s) {
			k := &keys[s.Key]
			k.spans = append(k.spans, i)
			k.count(i, s, v.ownerOrder[s.Owner], v.unknownWhy[s.Owner])
		}
	}
	for _, h := range refs(v.holds) {
		if h.remains && v.ownerOrder[h.owner] == ordAfterUnknown {
			keys[h.key].entered = append(keys[h.key].entered, h.owner)
		}
		if h.remains && h.core < never {
			keys[h.key].undone = append(keys[h.key].undone, segment{h.core, never})
		}
	}
	for k := range keys {
		if v.lapses != nil {
			keys[k].undone = append(keys[k].undone, v.lapses.after[k]...)
		}
		if keys[k].readers && len(keys[k].busy) > 0 {
			keys[k].undone = append(keys[k].undone, v.writesLeft(v.byKey[k])...)
		}
	}
	for i := range keys {
		keys[i].busy = v.withoutUndone(keys[i].busy, keys[i].undone)
	}
	for _, i := range v.orphans {
		k := &keys[v.h.Spans[i].Key]
		k.orphans = append(k.orphans, i)
	}
	for _, i := range v.renumbered {
		k := &keys[v.h.Spans[i].Key]
		k.renumbered = append(k.renumbered, i)
	}
	for _, i := range v.regrants {
		k := &keys[v.h.Spans[i].Key]
		k.regrants = append(k.regrants, i)
	}
	for i, k := range refs(keys) {
		k.permits = v.h.Limit(k.key)
		_, resized := v.resizes()[k.key]
		lapsed := v.lapses != nil && len(v.lapses.after[k.key]) > 0
		// the model has one size, no part of a request, and no permits whose lease ended at an unknown time
		if resized || k.permits > 0 && (forced[k.key] || lapsed) {
			k.permits = history.UnknownLimit
		}
		k.inferKind(v.usage[i], v.kind)
	}
	return keys
}

// leased reports whether the hold of acquire s, of unknown outcome, ends without a release in the history: with its
// lease or, in a semaphore, because the client takes it back later.
func (k *keyOps) leased(s *history.Span) bool { return s.Lease > 0 || k.ownLeases }

func (k *keyOps) count(i int32, s *history.Span, of programOrder, why unknownCause) {
	k.exact = k.exact && of == ordSequential
	if of == ordUnknown && !k.unjudgeable {
		k.unjudgeable, k.unjudgeableWhy = true, why
	}
	k.readers = k.readers || !s.Write
	k.manyPermits = k.manyPermits || s.Permits > 1
	if of != ordSequential && !s.Busy && s.Op != history.OpRelease {
		k.mode(s)
	}
	// A try may also have been granted before: the reply was lost, and the lease of that grant ended.
	if s.Undone || s.Op == history.OpTry && s.Valid > 0 && s.Return-s.Call > max(s.Lease, s.Valid-s.Return) {
		k.undone = append(k.undone, segment{s.Call, s.Return})
	}
	switch {
	case s.Undone && s.Outcome == history.Fail:
	case s.Busy:
		k.busy = append(k.busy, i)
	case s.Op == history.OpRelease:
	case s.Outcome == history.Info:
		k.unknown = min(k.unknown, s.Call)
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
func (k *keyOps) mode(s *history.Span) {
	if k.ownerModes == nil {
		k.ownerModes = make(map[int32]usage)
	}
	m := usageNested
	if s.Write {
		m = usageMixed
	}
	k.ownerModes[s.Owner] |= m
	k.ambiguous = k.ambiguous || k.ownerModes[s.Owner] == usageNested|usageMixed
}

// inferKind infers the kind of lock. An owner that acts again after an acquire of unknown outcome may have re-entered.
// The intended kind decides where the history leaves it open.
func (k *keyOps) inferKind(t usage, meant LockKind) {
	many := k.manyPermits || k.permits != 0
	deep := t&usageNested != 0 || (!k.exact && k.unknown != never)
	switch meant {
	case Mutex:
		deep = false
	case Reentrant:
		deep = true
	case ReadersWriterLock:
		k.readers = k.readers || !many
	}
	switch {
	case k.readers && (many || k.ambiguous || t&usageMixed != 0), many && k.permits <= 0:
		k.kind = search.Unmodelled
	case many:
		k.kind = search.Semaphore
	case k.readers:
		k.kind = search.ReadersWriter
	case k.tokens && deep:
		k.kind = search.ReentrantFenced
	case k.tokens:
		k.kind = search.FencedMutex
	case deep:
		k.kind = search.ReentrantMutex
	}
	if k.kind.Shared() && len(k.busy) > 0 {
		k.exact = false
	}
}

// prepare fills in the facts about lost holds that the search needs.
func (v *view) prepare(k *keyOps) {
	if k.kind == search.Semaphore {
		v.preparePermits(k)
		return
	}
	holds := v.byKey[k.key]
	for n := 1; n < len(holds) && len(k.busy) > 0 && k.exact; n++ {
		k.exact = !v.tied(holds[n-1], holds[n])
	}
	k.epochs = v.ownerEpochs(k.key)
	k.drops, k.dropped = nil, nil
	for _, h := range refsAt(v.holds, holds) {
		if h.ending == endLost {
			k.dropped = append(k.dropped, h.endEvent)
			k.drops = append(k.drops, search.Op{Call: h.core, Return: never, Owner: h.owner,
				Epoch: k.epochs.of(h.owner, h.endEvent),
				Span:  -1, Process: v.h.Spans[h.span].Process, Kind: search.OpHoldLost, Unknown: true, Depth: -1})
		}
	}
}

// writesLeft are the times after the losses of writes whose owners were granted a read later: servers may have kept the
// write until its lease ended, let its owner read inside it, and refused others.
func (v *view) writesLeft(holds []int32) (all []segment) {
	var lost map[int32]time.Duration // by owner
	for _, h := range refsAt(v.holds, holds) {
		if core, is := lost[h.owner]; h.reader && is && core < h.from {
			all = append(all, segment{core, never})
		}
		if !h.reader && h.ending == endLost {
			if lost == nil {
				lost = make(map[int32]time.Duration)
			}
			lost[h.owner] = h.core
		}
	}
	return all
}

// epochs are, by owner, the grants that came after a lost hold, as event indices. A later grant begins a new hold, and
// the remains of the old one at the servers neither extend nor end it: to the model it is another owner.
type epochs map[int32][]int32

func (v *view) ownerEpochs(key int32) epochs {
	var l epochs
	var lost map[int32]bool
	for _, h := range refsAt(v.holds, v.byKey[key]) {
		if h.ending != endLost && lost == nil {
			continue
		}
		if lost == nil {
			l, lost = make(epochs), make(map[int32]bool)
		}
		if lost[h.owner] {
			l[h.owner] = append(l[h.owner], int32(v.granted(h)))
		}
		if h.ending == endLost || lost[h.owner] {
			lost[h.owner] = h.ending == endLost
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
