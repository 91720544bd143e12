package reports

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/stats"
)

// interval is from ≤ until.
type interval struct{ from, until time.Duration }

func (w interval) length() time.Duration { return w.until - w.from }

// longestFree is the longest interval in which a lock was free, as its clients saw it, while a client waited for it.
func longestFree(r *Run) interval {
	held := make([]stats.Held, len(r.holds))
	for i := range r.holds {
		held[i] = stats.Held{Key: r.holds[i].Key, Interval: stats.Interval{From: r.holds[i].From, Until: r.holds[i].to}}
	}
	w := stats.LongestFree(r.History, held)
	return interval{w.From, w.Until}
}

// clientStats are the numbers of one client.
type clientStats struct {
	Client  int           `json:"client"`
	Grants  int           `json:"grants"`
	Refused int           `json:"refused"` // acquires and tries that failed
	Unknown int           `json:"unknown"` // operations of unknown outcome
	Lost    int           `json:"lost"`    // holds that it learned were lost
	Held    time.Duration `json:"held_ns"`
	Longest time.Duration `json:"longest_wait_ns"` // of its acquires, granted, refused or of unknown outcome
}

// perClient are the numbers of every client, in the order of their numbers.
func (r *Run) perClient() []clientStats {
	rows := map[int]*clientStats{}
	row := func(c int) *clientStats {
		if rows[c] == nil {
			rows[c] = &clientStats{Client: c}
		}
		return rows[c]
	}
	for s := range each(r.History.Spans) {
		c := row(r.clientIn(s.Process))
		if taking(s) && s.Return != history.Infinity {
			c.Longest = max(c.Longest, s.Return-s.Call)
		}
		switch {
		case s.Outcome == history.Info:
			c.Unknown++
		case taking(s) && s.Outcome == history.Fail:
			c.Refused++
		}
	}
	for _, u := range r.History.Unknown { // the client waited until it learned that the outcome is unknown
		s := &r.History.Spans[u.Span]
		if taking(s) {
			c := row(r.clientIn(s.Process))
			c.Longest = max(c.Longest, u.Time-s.Call)
		}
	}
	for h := range each(r.holds) {
		c := row(h.Client)
		c.Grants++
		c.Held += h.to - h.From
		if h.lost() {
			c.Lost++
		}
	}
	for _, h := range r.lostInRelease() {
		row(h.Client).Lost++
	}
	var all []clientStats
	for _, c := range rows {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b clientStats) int { return a.Client - b.Client })
	return all
}

// lostInRelease are the holds whose loss was reported when their release had been requested already.
func (r *Run) lostInRelease() (lost []*hold) {
	last := map[[2]int32]*hold{} // by owner and key
	next := 0
	for n := range each(r.History.Notices) {
		if n.F != history.Lost || n.Left > 0 {
			continue
		}
		for ; next < len(r.holds) && r.holds[next].From <= n.Time; next++ {
			h := &r.holds[next]
			last[[2]int32{h.Owner, h.Key}] = h
		}
		if h := last[[2]int32{n.Owner, n.Key}]; h != nil && !h.lost() {
			lost = append(lost, h)
		}
	}
	return lost
}

// has reports whether an instant is in the interval.
func (w interval) has(t time.Duration) bool { return w.from <= t && t <= w.until }

// overlaps reports whether two intervals have an instant in common.
func (w interval) overlaps(other interval) bool {
	return w.from <= other.until && w.until >= other.from
}

// faultTally counts faults.
type faultTally struct {
	Injected  int `json:"injected"`
	Effective int `json:"effective"` // of those injected
	Missed    int `json:"missed"`    // planned, but never injected
}

func (r *Run) tally() faultTally {
	effective := allOf(r.faults, func(f *injection) bool { return len(f.effects) > 0 })
	return faultTally{Injected: len(r.faults), Effective: len(effective), Missed: len(r.missed)}
}
