package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOpenOps compares openOps with a list that is searched linearly.
func TestOpenOps(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		var spans []Span
		var list []int32
		o := new(openOps)
		for step := range 400 {
			op, key := Op(1+r.IntN(3)), int32(r.IntN(4))
			if r.IntN(100) < 55 {
				spans = append(spans, Span{Op: op, Key: key, Ended: -1})
				i := int32(len(spans) - 1)
				o.add(i, spans)
				list = append(list, i)
			} else {
				if r.IntN(4) == 0 {
					key = anyKey
				}
				want, found := int32(0), false
				for n := len(list) - 1; n >= 0 && !found; n-- {
					if s := &spans[list[n]]; s.Op == op && (key == anyKey || s.Key == key) {
						want, found = list[n], true
						list = slices.Delete(list, n, n+1)
					}
				}
				got, ok := o.take(op, key, spans)
				if got != want || ok != found {
					t.Fatalf("seed %d, step %d: took %d %v, want %d %v", seed, step, got, ok, want, found)
				}
				if ok {
					spans[got].Ended = int32(step)
				}
			}
			first, ok := o.first(spans)
			if ok != (len(list) > 0) || ok && first != list[0] {
				t.Fatalf("seed %d, step %d: first = %d, %v of %v", seed, step, first, ok, list)
			}
		}
	}
}

// BenchmarkOpen pairs operations of one process that are all open at once and
// complete in the order of their invocations.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("%dk", n/1000), func(b *testing.B) {
			events := make([]Event, 2*n)
			for i := range n {
				key := fmt.Sprint("key-", i)
				events[i] = Event{Index: int64(i), Type: Invoke, F: Acquire, Key: key}
				events[n+i] = Event{Index: int64(n + i), Type: OK, F: Acquire, Key: key}
			}
			for b.Loop() {
				if h, err := Build(events); err != nil || len(h.Spans) != n || h.Spans[0].Ended != int32(n) {
					b.Fatal(err)
				}
			}
		})
	}
}
