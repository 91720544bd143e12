// Package stats measures a history: how long operations took, and how long a lock was free while a client waited for
// it. [Threshold] is a limit for such a number.
package stats

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// Latency are the latencies of one kind of operation, where it succeeded. An acquire includes its wait; the others are
// round trips.
type Latency struct {
	Op  string        `json:"op"`
	N   int           `json:"n"`
	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

// timed are the operations whose latency is measured.
func timed() []history.Op {
	return []history.Op{history.OpAcquire, history.OpTry, history.OpRenew, history.OpRelease}
}

// Latencies are the latencies by operation; an operation that never succeeded is left out.
func Latencies(h *history.History) []Latency {
	took := map[history.Op][]time.Duration{}
	for i := range h.Spans {
		s := &h.Spans[i]
		if s.Outcome == history.OK && s.Return != history.Infinity {
			took[s.Op] = append(took[s.Op], s.Return-s.Call)
		}
	}
	var rows []Latency
	for _, op := range timed() {
		all := took[op]
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		rows = append(rows, Latency{Op: op.String(), N: len(all), P50: percentile(all, 0.50), P90: percentile(all, 0.90),
			P99: percentile(all, 0.99), Max: all[len(all)-1]})
	}
	return rows
}

// percentile is the smallest value that is ≥ a fraction q of the sorted values.
func percentile(sorted []time.Duration, q float64) time.Duration {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Interval is from ≤ until.
type Interval struct{ From, Until time.Duration }

// Length is how long it is.
func (w Interval) Length() time.Duration { return w.Until - w.From }

// Held is when a lock was held.
type Held struct {
	Key int32 // index into History.Keys
	Interval
}

// LongestFree is the longest interval in which a lock was free, as its clients saw it, while a client waited for it.
// Requests of unknown outcome are left out: it is unknown how long they waited.
func LongestFree(h *history.History, holds []Held) Interval {
	byKey := map[int32][]edge{}
	for _, w := range holds {
		byKey[w.Key] = append(byKey[w.Key], edge{w.From, +1, 0}, edge{w.Until, -1, 0})
	}
	for i := range h.Spans {
		s := &h.Spans[i]
		if s.Op == history.OpAcquire && s.Outcome != history.Info && s.Return != history.Infinity {
			byKey[s.Key] = append(byKey[s.Key], edge{s.Call, 0, +1}, edge{s.Return, 0, -1})
		}
	}
	var best Interval
	for _, edges := range byKey {
		if w := longestFreeOf(edges); w.Length() > best.Length() || w.Length() == best.Length() && w.From < best.From {
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

func longestFreeOf(edges []edge) Interval {
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	var best Interval
	held, waiting := 0, 0
	since, open := time.Duration(0), false
	for i := 0; i < len(edges); {
		at := edges[i].at
		for ; i < len(edges) && edges[i].at == at; i++ {
			held += edges[i].held
			waiting += edges[i].waiting
		}
		free := held == 0 && waiting > 0
		if open && !free && at-since > best.Length() {
			best = Interval{since, at}
		}
		if free && !open {
			since = at
		}
		open = free
	}
	return best
}
