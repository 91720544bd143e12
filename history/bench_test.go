package history_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
)

// recorded returns n events like a run's: four clients, one key, a unique owner for every hold.
func recorded(n int) []history.Event {
	events := make([]history.Event, 0, n)
	owner := []byte("c0-00000000000000")
	for i := 0; len(events) < n; i++ {
		p := history.Process(i % 4)
		for j, k := 3, i; j < len(owner); j, k = j+1, k/16 {
			owner[j] = "0123456789abcdef"[k%16]
		}
		args := &history.Value{Owner: string(owner), Lease: 2 * time.Second}
		result := &history.Value{Token: uint64(i + 1), Valid: 1950 * time.Millisecond, Count: 1}
		for _, e := range []history.Event{
			{Type: history.Invoke, F: history.Acquire, Value: args},
			{Type: history.OK, F: history.Acquire, Value: result},
			{Type: history.Invoke, F: history.Release},
			{Type: history.OK, F: history.Release},
		} {
			e.Index, e.Time, e.Process, e.Key = int64(len(events)), time.Duration(len(events))*137_011, p, "orders"
			events = append(events, e)
		}
	}
	return events[:n]
}

// BenchmarkRead reads the same events in every format without pairing, and
// JSON lines also with pairing.
func BenchmarkRead(b *testing.B) {
	const n = 200_000
	list := recorded(n)
	var lines, maps bytes.Buffer
	for i := range list {
		lines.Write(append(list[i].AppendJSON(nil), '\n'))
	}
	if err := foreign.WriteEDN(&maps, list); err != nil {
		b.Fatal(err)
	}
	array := "[" + strings.ReplaceAll(strings.TrimSpace(lines.String()), "\n", ",\n") + "]"
	for _, form := range []struct{ name, text string }{
		{"jsonl", lines.String()}, {"json", array}, {"edn", maps.String()},
	} {
		b.Run(form.name, func(b *testing.B) {
			b.SetBytes(int64(len(form.text)))
			b.ReportAllocs()
			for b.Loop() {
				seen := 0
				_, err := foreign.ReadEvents(strings.NewReader(form.text), form.name, foreign.Options{},
					func(*history.Event, int) error { seen++; return nil })
				if err != nil || seen != n {
					b.Fatal(err, seen)
				}
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
	b.Run("jsonl-paired", func(b *testing.B) {
		b.SetBytes(int64(lines.Len()))
		b.ReportAllocs()
		for b.Loop() {
			h, err := history.ReadAll(bytes.NewReader(lines.Bytes()), "x")
			if err != nil || len(h.Spans) != n/2 {
				b.Fatal(err)
			}
		}
		b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	})
}
