package reports

import (
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// window is a span of time, from ≤ until.
type window struct{ from, until time.Duration }

func (w window) length() time.Duration { return w.until - w.from }

// longestGap is the longest time during which one lock was free, as far as the
// clients know, while somebody waited for it. Requests of unknown outcome are
// left out: nobody knows how long they waited.
func longestGap(r *Run) window {
	byKey := map[int32][]edge{}
	for i := range r.holds {
		h := &r.holds[i]
		byKey[h.Key] = append(byKey[h.Key], edge{h.From, +1, 0}, edge{h.to, -1, 0})
	}
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		if s.Op == history.OpAcquire && s.Outcome != history.Info && s.Return != history.Infinity {
			byKey[s.Key] = append(byKey[s.Key], edge{s.Call, 0, +1}, edge{s.Return, 0, -1})
		}
	}
	var best window
	for _, edges := range byKey {
		if w := gapOf(edges); w.length() > best.length() || w.length() == best.length() && w.from < best.from {
			best = w
		}
	}
	return best
}

// edge is a change in how many hold a lock, or wait for it.
type edge struct {
	at            time.Duration
	held, waiting int
}

func gapOf(edges []edge) window {
	sort.Slice(edges, func(i, k int) bool { return edges[i].at < edges[k].at })
	var best window
	held, waiting := 0, 0
	since, open := time.Duration(0), false
	for i := 0; i < len(edges); {
		at := edges[i].at
		for ; i < len(edges) && edges[i].at == at; i++ {
			held += edges[i].held
			waiting += edges[i].waiting
		}
		free := held == 0 && waiting > 0
		if open && !free && at-since > best.length() {
			best = window{since, at}
		}
		if free && !open {
			since = at
		}
		open = free
	}
	return best
}

// clientRow is what one client did.
type clientRow struct {
	Client    int           `json:"client"`
	Grants    int           `json:"grants"`
	Refused   int           `json:"refused"` // acquire or try that certainly failed
	Ambiguous int           `json:"ambiguous"`
	Lost      int           `json:"lost"` // told that a hold was lost
	Held      time.Duration `json:"held_ns"`
	Longest   time.Duration `json:"longest_wait_ns"`
}

// perClient sums up every client, in the order of their numbers.
func (r *Run) perClient() []clientRow {
	rows := map[int]*clientRow{}
	row := func(c int) *clientRow {
		if rows[c] == nil {
			rows[c] = &clientRow{Client: c}
		}
		return rows[c]
	}
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		c := row(s.Process.Client(r.clients()))
		taking := s.Op == history.OpAcquire || s.Op == history.OpTry
		switch {
		case s.Outcome == history.Info:
			c.Ambiguous++
		case taking && s.Outcome == history.Fail:
			c.Refused++
		case taking:
			c.Longest = max(c.Longest, s.Return-s.Call)
		}
	}
	for i := range r.holds {
		h := &r.holds[i]
		c := row(h.Client)
		c.Grants++
		c.Held += h.to - h.From
		if h.End == checker.LossReported || h.End == checker.RenewalRefused {
			c.Lost++
		}
	}
	var all []clientRow
	for _, c := range rows {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b clientRow) int { return a.Client - b.Client })
	return all
}

// latencyRow is how long one kind of operation took, of those that were answered.
type latencyRow struct {
	Op  string        `json:"op"`
	N   int           `json:"n"`
	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

// latencies are percentiles by operation. An acquire is a wait, the others are round trips.
func (r *Run) latencies() []latencyRow {
	took := map[history.Op][]time.Duration{}
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		if s.Outcome == history.OK && s.Return != history.Infinity {
			took[s.Op] = append(took[s.Op], s.Return-s.Call)
		}
	}
	var rows []latencyRow
	for _, op := range []history.Op{history.OpAcquire, history.OpTry, history.OpRenew, history.OpRelease} {
		all := took[op]
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		rows = append(rows, latencyRow{Op: opName(op), N: len(all), P50: rank(all, 0.50), P90: rank(all, 0.90),
			P99: rank(all, 0.99), Max: all[len(all)-1]})
	}
	return rows
}

// rank is the smallest value that a share q of sorted values does not exceed.
func rank(sorted []time.Duration, q float64) time.Duration {
	i := int(q*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
