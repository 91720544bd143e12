package checker

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/anishathalye/porcupine"
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/linear"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
)

// longSpans is a correct history of n operations of clients that compete for keys, made as spans, without events, so
// that ten million fit into memory. One release in fifty is of unknown outcome: one operation in a hundred.
func longSpans(n, clients, keys int, seed uint64) *history.History {
	r := rand.New(rand.NewPCG(seed, 12))
	h := &history.History{Spans: make([]history.Span, 0, n), Events: 2 * n, Clients: clients * keys}
	for k := range keys {
		h.Keys = append(h.Keys, fmt.Sprint("key-", k))
	}
	some := func(n int) time.Duration { return time.Duration(1 + r.IntN(n)) }
	free := make([]time.Duration, keys)
	next := make([]time.Duration, keys*clients)
	for i := 0; i < n; i += 2 {
		k := (i / 2) % keys
		c := k*clients + r.IntN(clients)
		owner := int32(len(h.Owners))
		h.Owners = append(h.Owners, "")
		s := history.Span{Call: next[c], Return: max(free[k], next[c]) + some(2000), Lease: time.Second, Ended: -1,
			Token: uint64(i + 1), Process: history.Process(c), Key: int32(k), Owner: owner, Permits: 1, Op: history.OpAcquire,
			Outcome: history.OK, Write: true}
		s.Valid = s.Return + time.Second
		h.Spans = append(h.Spans, s)
		s.Op, s.Token, s.Valid, s.Call = history.OpRelease, 0, 0, s.Return+some(3000)
		if s.Return = s.Call + some(1000); r.IntN(50) == 0 {
			s.Outcome = history.Info
		}
		free[k], next[c] = s.Call, s.Return+some(500)
		h.End = max(h.End, s.Return)
		h.Spans = append(h.Spans, s)
	}
	number(h)
	return h
}

// number sorts spans by invocation, and numbers their events.
func number(h *history.History) {
	slices.SortFunc(h.Spans, func(a, b history.Span) int { return cmp.Compare(a.Call, b.Call) })
	returns := make([]int32, len(h.Spans))
	for i := range returns {
		returns[i] = int32(i)
	}
	slices.SortFunc(returns, func(a, b int32) int { return cmp.Compare(h.Spans[a].Return, h.Spans[b].Return) })
	event, n := int32(0), 0
	finish := func(before time.Duration) {
		for ; n < len(returns) && h.Spans[returns[n]].Return < before; n++ {
			h.Spans[returns[n]].Ended = event
			event++
		}
	}
	for i := range h.Spans {
		finish(h.Spans[i].Call)
		h.Spans[i].Invoked = event
		event++
	}
	finish(segment.Never)
	for i := range h.Spans {
		if s := &h.Spans[i]; s.Outcome == history.Info {
			s.Return = segment.Never
		}
	}
}

// Sizes of the benchmarks: 50 clients of one key, or 5 of each of 1,000.
var benchSizes = []struct {
	name               string
	ops, clients, keys int
}{
	{"100k/1key", 100_000, 50, 1}, {"100k/1000keys", 100_000, 5, 1000},
	{"1M/1key", 1_000_000, 50, 1}, {"1M/1000keys", 1_000_000, 5, 1000},
	{"10M/1key", 10_000_000, 50, 1}, {"10M/1000keys", 10_000_000, 5, 1000},
}

// BenchmarkJudge judges histories in memory by every property. B/operation is the size of the spans and all that is
// allocated by the judgement.
func BenchmarkJudge(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(size.name, func(b *testing.B) {
			h := longSpans(size.ops, size.clients, size.keys, 3)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			cpu := cpuTime(b)
			for b.Loop() {
				if r := Judge(h, property.Options{}).Result(property.Exclusion); r.Outcome != property.Holds {
					b.Fatal(r.Outcome, r.Summary)
				}
			}
			cpu = cpuTime(b) - cpu
			runtime.ReadMemStats(&after)
			n := float64(len(h.Spans)) * float64(b.N)
			b.ReportMetric(n/b.Elapsed().Seconds(), "operations/s")
			b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(unsafe.Sizeof(history.Span{}))+float64(after.TotalAlloc-before.TotalAlloc)/n, "B/operation")
		})
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOrder finds out whether one key has a legal order: by porcupine, by the sweep, and by all properties
// together. 5 clients: with 50, porcupine needs more than 12 GB for 100k operations.
func BenchmarkOrder(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		h := longSpans(n, 5, 1, 3)
		v := bounds.New(h, given.Options{})
		b.Run(fmt.Sprintf("%dk/porcupine", n/1000), func(b *testing.B) {
			k := &linear.KeyedOps(v)[0]
			linear.Prepare(v, k)
			for b.Loop() {
				j := search.Job{Kind: k.Kind, Ops: linear.ModelOps(v, k)}
				if got := j.Run(0); got != porcupine.Ok {
					b.Fatal(got)
				}
			}
		})
		b.Run(fmt.Sprintf("%dk/sweep", n/1000), func(b *testing.B) {
			for b.Loop() {
				v := bounds.New(h, given.Options{})
				linear.Sweep(v, &linear.KeyedOps(v)[0], 0, func(f linear.Flaw) { b.Fatal(f) })
			}
		})
		b.Run(fmt.Sprintf("%dk/all", n/1000), func(b *testing.B) {
			for b.Loop() {
				if r := Judge(h, property.Options{Search: -1}).Result(property.Linearizable); r.Outcome != property.Holds {
					b.Fatal(r.Outcome, r.Summary)
				}
			}
		})
	}
}

// BenchmarkRead reads JSON lines and pairs them.
func BenchmarkRead(b *testing.B) {
	var text []byte
	events := longHistory(200_000, 10, 1, 3)
	for i := range events {
		text = append(events[i].AppendJSON(text), '\n')
	}
	b.SetBytes(int64(len(text)))
	b.Run("scan", func(b *testing.B) {
		for b.Loop() {
			n := 0
			_, err := history.Scan(bytes.NewReader(text), "bench", func(*history.Event, int) error {
				n++
				return nil
			})
			if n != len(events) || err != nil {
				b.Fatal(n, err)
			}
		}
		b.ReportMetric(float64(len(events))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	})
	b.Run("scan-and-pair", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := history.ReadAll(bytes.NewReader(text), "bench"); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(events))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	})
}
