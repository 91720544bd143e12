package excuse

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// ClientTarget begins the target of a fault on a client, or on its end of a link.
const ClientTarget = "client:"

// FaultTime is a time in which a fault was in force, or the instant of a note about a server.
type FaultTime struct {
	segment.Segment
	id              int
	reach           time.Duration // the latest end of this one and of those before it
	Target, Affects string
	Class           string // see history.FaultValue; "": unknown
	Noted           bool   // it is no fault, but a note
	Unacknowledged  bool   // keeps the acknowledgements of replicas from a master
	ChangesRoles    bool   // a note: a server became master or replica
	Stall           bool   // a note: its target, or the harness, did not run
}

// findFaults returns the times of all faults, ordered by their beginnings.
func (v *View) findFaults() (all []FaultTime) {
	open := make(map[int]int) // by fault id: index in all
	for _, f := range refs.All(v.H.Faults) {
		n, in := open[f.ID]
		switch {
		case f.Phase == history.Injected && !in:
			open[f.ID] = len(all)
			all = append(all, FaultTime{Segment: segment.Of(f.Time, segment.Never), id: f.ID, Target: f.Target,
				Affects: f.Affects,
				Class:   f.Class, Unacknowledged: f.Object == history.ObjectAcknowledgements})
		case f.Phase == history.Healed && in:
			delete(open, f.ID)
			if all[n].Until = f.Time; all[n].Class == history.FaultDrops {
				all[n].Until = v.noticedBy(all[n].Segment)
			}
		case f.Phase == history.Noted && Explains(f.Name):
			note := FaultTime{Segment: segment.Of(f.Time-f.Lasted, f.Time), Target: f.Target, Noted: true,
				ChangesRoles: changesRoles(f.Name), Stall: f.Stalled()}
			if f.Name == history.ClientStalled {
				note.Affects = history.AffectsClients
			}
			all = append(all, note)
		}
	}
	// A stall is noted at its end.
	slices.SortStableFunc(all, func(a, b FaultTime) int { return cmp.Compare(a.From, b.From) })
	reach := time.Duration(0)
	for _, f := range refs.All(all) {
		reach = max(reach, f.Until)
		f.reach = reach
	}
	return all
}

// Explains reports whether a note of that name may explain the behavior of a lock.
func Explains(name string) bool {
	return slices.Contains([]string{history.HarnessStalled, history.ClientStalled, history.NodePromoted,
		history.NodeDemoted, history.NodeSilent, history.NodeReplies}, name)
}

// changesRoles reports whether a note of that name is about a server that became master, or replica.
func changesRoles(name string) bool {
	return name == history.NodePromoted || name == history.NodeDemoted
}

// Client returns the number of the client that a fault targets, itself or its end of a link; -1 if there is none.
func (f *FaultTime) Client() int {
	end, _, _ := strings.Cut(f.Target, ">")
	name, is := strings.CutPrefix(end, ClientTarget)
	client, err := strconv.Atoi(name)
	if !is || err != nil {
		return -1
	}
	return client
}

// MayAffect reports whether a fault may have the effect word, of history.FaultValue. A fault without such words may
// affect everything, except that a fault of a client does not change the data of servers.
func (f *FaultTime) MayAffect(word string) bool {
	if f.Affects == "" {
		return word != history.AffectsData || f.Client() < 0
	}
	return f.States(word)
}

// States reports whether a fault states the effect word, of history.FaultValue.
func (f *FaultTime) States(word string) bool { return AffectsWord(f.Affects, word) }

// AffectsWord reports whether affects, the list of words of a fault, has word.
func AffectsWord(affects, word string) bool { return slices.Contains(strings.Fields(affects), word) }

// refusesForGood reports whether servers refuse commands for a reason that a retry does not change: rights are lacking,
// or another program wrote data. Locks that need no messages ([promise.PollsWithoutMessages]) need no rights to them.
func (f *FaultTime) refusesForGood(o given.Options) bool {
	return f.Class == history.FaultPlants || f.States(history.AffectsRights) &&
		!(o.States(promise.PollsWithoutMessages) && onlyMessages(f.Affects))
}

// Disturbances are faults and events that may explain a lock's behavior, so that it is not held against the lock.
type Disturbances struct {
	Times []FaultTime
	Slack time.Duration // for which a fault has consequences after it was healed
}

// Disturbances returns the disturbances of the whole lock, except for operations of operators (scope.OperatorOnly).
func (v *View) Disturbances(o given.Options) Disturbances { return v.disturbancesFor(wholeLock(), o) }

// AllDisturbances returns the disturbances of all faults.
func (v *View) AllDisturbances(o given.Options) Disturbances {
	return Disturbances{v.FaultTimes(), o.Slack()}
}

// AnyClient stands for all clients in [Disturbances.MayAffect].
const AnyClient = -1

// MayAffect reports whether a fault at a server or at client was in force during s that may have one of the effects
// words.
func (d Disturbances) MayAffect(s segment.Segment, client int, words ...string) bool {
	return d.Any(s, func(f *FaultTime) bool {
		at := f.Client()
		return (at < 0 || client == AnyClient || at == client) && slices.ContainsFunc(words, f.MayAffect)
	})
}

// Any reports whether a fault that satisfies is was in force at some time in s. It asks the latest fault first.
func (d Disturbances) Any(s segment.Segment, is func(*FaultTime) bool) bool {
	n := sort.Search(len(d.Times), func(n int) bool { return d.Times[n].From > s.Until })
	for n--; n >= 0 && s.From <= segment.Later(d.Times[n].reach, d.Slack); n-- {
		if f := &d.Times[n]; s.From <= segment.Later(f.Until, d.Slack) && is(f) {
			return true
		}
	}
	return false
}

// EndOf is when all faults at a server or at client that were in force during s are over.
func (d Disturbances) EndOf(s segment.Segment, client int) (t time.Duration) {
	d.Any(s, func(f *FaultTime) bool {
		if at := f.Client(); at < 0 || at == client {
			t = max(t, segment.Later(f.Until, d.Slack))
		}
		return false
	})
	return t
}

// RefusedForGood reports whether more servers than may be down refused commands in s, for a reason that a repeated
// request meets again.
func (d Disturbances) RefusedForGood(s segment.Segment, o given.Options) bool {
	by := make(map[string]bool)
	return d.Any(s, func(f *FaultTime) bool {
		if !f.refusesForGood(o) {
			return false
		}
		for _, node := range TargetNodes(f.Target) {
			by[node] = true
		}
		return by[""] || len(by) > max(0, o.MayBeDown)
	})
}

// DeliveredBy returns the time by which a request that client sent at t had arrived, if it ever did: a fault that holds
// the request delivers it when the fault is healed. Faults that last until the end of the history, or affect replies
// alone, are ignored.
func (d Disturbances) DeliveredBy(t time.Duration, client int) time.Duration {
	return Disturbances{Times: d.Times}.HeldUntil(t, client, func(f *FaultTime) bool {
		return f.Until != segment.Never && !f.States(history.AffectsReplies) &&
			(f.MayAffect(history.AffectsTraffic) || f.MayAffect(history.AffectsDelays))
	})
}

// HeldUntil returns the time until which faults at a server or at client that satisfy is may have held a message of t:
// faults in force at t, and faults in force when these are over; t if there is none.
func (d Disturbances) HeldUntil(t time.Duration, client int, is func(*FaultTime) bool) time.Duration {
	first := sort.Search(len(d.Times), func(n int) bool { return segment.Later(d.Times[n].reach, d.Slack) >= t })
	for _, f := range refs.All(d.Times[first:]) { // by beginning: one may hold messages that another has delivered
		if f.From > t {
			break
		}
		at, over := f.Client(), segment.Later(f.Until, d.Slack)
		if t <= over && (at < 0 || at == client) && is(f) {
			t = over
		}
	}
	return t
}

// findPauses finds, by client, the times in which a fault stopped it or its connections, or the harness did not run.
func (v *View) findPauses() map[int][]segment.Segment {
	return v.ClientTimes(func(*FaultTime) bool { return true })
}
