package reports

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// interval is from ≤ until.
type interval struct{ from, until time.Duration }

func (w interval) length() time.Duration { return w.until - w.from }

// longestFree is the longest interval in which a lock was free, as its clients saw
// it, while a client waited for it. Requests of unknown outcome are left out: it
// is unknown how long they waited.
func longestFree(r *Run) interval {
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
	var best interval
	for _, edges := range byKey {
		if w := longestFreeOf(edges); w.length() > best.length() || w.length() == best.length() && w.from < best.from {
			best = w
		}
	}
	return best
}

// edge changes how many clients hold a lock or wait for it.
type edge struct {
	at            time.Duration
	held, waiting int
}

func longestFreeOf(edges []edge) interval {
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	var best interval
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
			best = interval{since, at}
		}
		if free && !open {
			since = at
		}
		open = free
	}
	return best
}

// clientStats are the numbers of one client.
type clientStats struct {
	Client  int           `json:"client"`
	Grants  int           `json:"grants"`
	Refused int           `json:"refused"` // acquires and tries that failed
	Unknown int           `json:"unknown"` // operations of unknown outcome
	Lost    int           `json:"lost"`    // holds that it learned were lost
	Held    time.Duration `json:"held_ns"`
	Longest time.Duration `json:"longest_wait_ns"`
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
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		c := row(s.Process.Client(r.History.Clients))
		taking := s.Op == history.OpAcquire || s.Op == history.OpTry
		switch {
		case s.Outcome == history.Info:
			c.Unknown++
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
		if h.lost() {
			c.Lost++
		}
	}
	var all []clientStats
	for _, c := range rows {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b clientStats) int { return a.Client - b.Client })
	return all
}

// latencyStats are the latencies of one kind of operation, where it succeeded.
type latencyStats struct {
	Op  string        `json:"op"`
	N   int           `json:"n"`
	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

// latencies are the latencies by operation. An acquire includes its wait; the others are round trips.
func (r *Run) latencies() []latencyStats {
	took := map[history.Op][]time.Duration{}
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		if s.Outcome == history.OK && s.Return != history.Infinity {
			took[s.Op] = append(took[s.Op], s.Return-s.Call)
		}
	}
	var rows []latencyStats
	for _, op := range []history.Op{history.OpAcquire, history.OpTry, history.OpRenew, history.OpRelease} {
		all := took[op]
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		rows = append(rows, latencyStats{Op: opName(op), N: len(all), P50: percentile(all, 0.50), P90: percentile(all, 0.90),
			P99: percentile(all, 0.99), Max: all[len(all)-1]})
	}
	return rows
}

// percentile is the smallest value that is ≥ a fraction q of the sorted values.
func percentile(sorted []time.Duration, q float64) time.Duration {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
