package checker

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// clientTarget begins the target of a fault on a client, or on its end of a link.
const clientTarget = "client:"

// faultTime is a time in which a fault was in force, or the instant of a note about a server.
type faultTime struct {
	segment
	id              int
	reach           time.Duration // the latest end of this one and of those before it
	target, affects string
	class           string // see history.FaultValue; "": unknown
	noted           bool   // it is no fault, but a note
	unacknowledged  bool   // keeps the acknowledgements of replicas from a master
	changesRoles    bool   // a note: a server became master or replica
	stall           bool   // a note: its target, or the harness, did not run
}

// findFaults returns the times of all faults, ordered by their beginnings.
func (v *view) findFaults() (all []faultTime) {
	open := make(map[int]int) // by fault id: index in all
	for _, f := range refs(v.h.Faults) {
		n, in := open[f.ID]
		switch {
		case f.Phase == history.Injected && !in:
			open[f.ID] = len(all)
			all = append(all, faultTime{segment: segment{f.Time, never}, id: f.ID, target: f.Target, affects: f.Affects,
				class: f.Class, unacknowledged: f.Object == history.ObjectAcknowledgements})
		case f.Phase == history.Healed && in:
			delete(open, f.ID)
			if all[n].until = f.Time; all[n].class == history.FaultDrops {
				all[n].until = v.noticedBy(all[n].segment)
			}
		case f.Phase == history.Noted && explains(f.Name):
			note := faultTime{segment: segment{f.Time - f.Lasted, f.Time}, target: f.Target, noted: true,
				changesRoles: changesRoles(f.Name), stall: f.Stalled()}
			if f.Name == history.ClientStalled {
				note.affects = history.AffectsClients
			}
			all = append(all, note)
		}
	}
	// A stall is noted at its end.
	slices.SortStableFunc(all, func(a, b faultTime) int { return cmp.Compare(a.from, b.from) })
	reach := time.Duration(0)
	for _, f := range refs(all) {
		reach = max(reach, f.until)
		f.reach = reach
	}
	return all
}

// explains reports whether a note of that name may explain the behavior of a lock.
func explains(name string) bool {
	return slices.Contains([]string{history.HarnessStalled, history.ClientStalled, history.NodePromoted,
		history.NodeDemoted, history.NodeSilent, history.NodeReplies}, name)
}

// changesRoles reports whether a note of that name is about a server that became master, or replica.
func changesRoles(name string) bool {
	return name == history.NodePromoted || name == history.NodeDemoted
}

// client returns the number of the client that a fault targets, itself or its end of a link; -1 if there is none.
func (f *faultTime) client() int {
	end, _, _ := strings.Cut(f.target, ">")
	name, is := strings.CutPrefix(end, clientTarget)
	client, err := strconv.Atoi(name)
	if !is || err != nil {
		return -1
	}
	return client
}

// mayAffect reports whether a fault may have the effect word, of history.FaultValue. A fault without such words may
// affect everything, except that a fault of a client does not change the data of servers.
func (f *faultTime) mayAffect(word string) bool {
	if f.affects == "" {
		return word != history.AffectsData || f.client() < 0
	}
	return f.states(word)
}

// states reports whether a fault states the effect word, of history.FaultValue.
func (f *faultTime) states(word string) bool { return affectsWord(f.affects, word) }

// affectsWord reports whether affects, the list of words of a fault, has word.
func affectsWord(affects, word string) bool { return slices.Contains(strings.Fields(affects), word) }

// refusesForGood reports whether servers refuse commands for a reason that a retry does not change: rights are lacking,
// or another program wrote data. Locks that need no messages ([promise.PollsWithoutMessages]) need no rights to them.
func (f *faultTime) refusesForGood(o Options) bool {
	return f.class == history.FaultPlants || f.states(history.AffectsRights) &&
		!(o.states(promise.PollsWithoutMessages) && onlyMessages(f.affects))
}

// disturbances are faults and events that may explain a lock's behavior, so that it is not held against the lock.
type disturbances struct {
	times []faultTime
	slack time.Duration // for which a fault has consequences after it was healed
}

// disturbances returns the disturbances of the whole lock, except for operations of operators (scope.operatorOnly).
func (v *view) disturbances(o Options) disturbances { return v.disturbancesFor(wholeLock(), o) }

// allDisturbances returns the disturbances of all faults.
func (v *view) allDisturbances(o Options) disturbances {
	return disturbances{v.faultTimes(), o.slack()}
}

// anyClient stands for all clients in [disturbances.mayAffect].
const anyClient = -1

// mayAffect reports whether a fault at a server or at client was in force during s that may have one of the effects
// words.
func (d disturbances) mayAffect(s segment, client int, words ...string) bool {
	return d.any(s, func(f *faultTime) bool {
		at := f.client()
		return (at < 0 || client == anyClient || at == client) && slices.ContainsFunc(words, f.mayAffect)
	})
}

// any reports whether a fault that satisfies is was in force at some time in s. It asks the latest fault first.
func (d disturbances) any(s segment, is func(*faultTime) bool) bool {
	n := sort.Search(len(d.times), func(n int) bool { return d.times[n].from > s.until })
	for n--; n >= 0 && s.from <= later(d.times[n].reach, d.slack); n-- {
		if f := &d.times[n]; s.from <= later(f.until, d.slack) && is(f) {
			return true
		}
	}
	return false
}

// endOf is when all faults at a server or at client that were in force during s are over.
func (d disturbances) endOf(s segment, client int) (t time.Duration) {
	d.any(s, func(f *faultTime) bool {
		if at := f.client(); at < 0 || at == client {
			t = max(t, later(f.until, d.slack))
		}
		return false
	})
	return t
}

// refusedForGood reports whether more servers than may be down refused commands in s, for a reason that a repeated
// request meets again.
func (d disturbances) refusedForGood(s segment, o Options) bool {
	by := make(map[string]bool)
	return d.any(s, func(f *faultTime) bool {
		if !f.refusesForGood(o) {
			return false
		}
		for _, node := range targetNodes(f.target) {
			by[node] = true
		}
		return by[""] || len(by) > max(0, o.MayBeDown)
	})
}

// deliveredBy returns the time by which a request that client sent at t had arrived, if it ever did: a fault that holds
// the request delivers it when the fault is healed. Faults that last until the end of the history, or affect replies
// alone, are ignored.
func (d disturbances) deliveredBy(t time.Duration, client int) time.Duration {
	return disturbances{times: d.times}.heldUntil(t, client, func(f *faultTime) bool {
		return f.until != never && !f.states(history.AffectsReplies) &&
			(f.mayAffect(history.AffectsTraffic) || f.mayAffect(history.AffectsDelays))
	})
}

// heldUntil returns the time until which faults at a server or at client that satisfy is may have held a message of t:
// faults in force at t, and faults in force when these are over; t if there is none.
func (d disturbances) heldUntil(t time.Duration, client int, is func(*faultTime) bool) time.Duration {
	first := sort.Search(len(d.times), func(n int) bool { return later(d.times[n].reach, d.slack) >= t })
	for _, f := range refs(d.times[first:]) { // by beginning: one may hold messages that another has delivered
		if f.from > t {
			break
		}
		at, over := f.client(), later(f.until, d.slack)
		if t <= over && (at < 0 || at == client) && is(f) {
			t = over
		}
	}
	return t
}

// findPauses finds, by client, the times in which a fault stopped it or its connections, or the harness did not run.
func (v *view) findPauses() map[int][]segment {
	return v.clientTimes(func(*faultTime) bool { return true })
}
