package evidence

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/stats"
)

// Interval is from ≤ until.
type Interval struct{ From, Until time.Duration }

// Length is the duration of w.
func (w Interval) Length() time.Duration { return w.Until - w.From }

// LongestFree is the longest interval in which a lock was free, as its clients saw it, while a client waited for it.
func LongestFree(r *Run) Interval {
	held := make([]stats.Held, len(r.Holds))
	for i := range r.Holds {
		held[i] = stats.Held{Key: r.Holds[i].Key, Interval: stats.Interval{From: r.Holds[i].From, Until: r.Holds[i].To}}
	}
	w := stats.LongestFree(r.History, held)
	return Interval{w.From, w.Until}
}

// ClientStats are the numbers of one client.
type ClientStats struct {
	Client  int           `json:"client"`
	Grants  int           `json:"grants"`
	Refused int           `json:"refused"` // acquires and tries that failed
	Unknown int           `json:"unknown"` // operations of unknown outcome
	Lost    int           `json:"lost"`    // holds that it learned were lost
	Held    time.Duration `json:"held_ns"`
	Longest time.Duration `json:"longest_wait_ns"` // of its acquires, granted, refused or of unknown outcome
}

// PerClient are the numbers of every client, in the order of their numbers.
func (r *Run) PerClient() []ClientStats {
	rows := map[int]*ClientStats{}
	row := func(c int) *ClientStats {
		if rows[c] == nil {
			rows[c] = &ClientStats{Client: c}
		}
		return rows[c]
	}
	for s := range Each(r.History.Spans) {
		c := row(r.ClientIn(s.Process))
		if Taking(s) && s.Return != history.Infinity {
			c.Longest = max(c.Longest, s.Return-s.Call)
		}
		switch {
		case s.Outcome == history.Info:
			c.Unknown++
		case Taking(s) && s.Outcome == history.Fail:
			c.Refused++
		}
	}
	for _, u := range r.History.Unknown { // the client waited until it learned that the outcome is unknown
		s := &r.History.Spans[u.Span]
		if Taking(s) {
			c := row(r.ClientIn(s.Process))
			c.Longest = max(c.Longest, u.Time-s.Call)
		}
	}
	for h := range Each(r.Holds) {
		c := row(h.Client)
		c.Grants++
		c.Held += h.To - h.From
		if h.Lost() {
			c.Lost++
		}
	}
	for _, h := range r.lostInRelease() {
		row(h.Client).Lost++
	}
	var all []ClientStats
	for _, c := range rows {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b ClientStats) int { return a.Client - b.Client })
	return all
}

// lostInRelease are the holds whose loss was reported when their release had been requested already.
func (r *Run) lostInRelease() (lost []*Hold) {
	last := map[[2]int32]*Hold{} // by owner and key
	next := 0
	for n := range Each(r.History.Notices) {
		if n.F != history.Lost || n.Left > 0 {
			continue
		}
		for ; next < len(r.Holds) && r.Holds[next].From <= n.Time; next++ {
			h := &r.Holds[next]
			last[[2]int32{h.Owner, h.Key}] = h
		}
		if h := last[[2]int32{n.Owner, n.Key}]; h != nil && !h.Lost() {
			lost = append(lost, h)
		}
	}
	return lost
}

// Has reports whether an instant is in the interval.
func (w Interval) Has(t time.Duration) bool { return w.From <= t && t <= w.Until }

// Overlaps reports whether two intervals have an instant in common.
func (w Interval) Overlaps(other Interval) bool {
	return w.From <= other.Until && w.Until >= other.From
}

// FaultTally counts faults.
type FaultTally struct {
	Injected  int `json:"injected"`
	Effective int `json:"effective"` // of those injected
	Missed    int `json:"missed"`    // planned, but never injected
}

// Tally counts the faults of the run, without stalls.
func (r *Run) Tally() FaultTally {
	injected := AllOf(r.Faults, func(f *Fault) bool { return !f.Unplanned })
	effective := AllOf(r.Faults, func(f *Fault) bool { return !f.Unplanned && len(f.Effects) > 0 })
	return FaultTally{Injected: len(injected), Effective: len(effective), Missed: len(r.Missed)}
}
