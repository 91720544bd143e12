package checker

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/search"
)

// The targets of this file take the decisions of the sketcher from a fuzzer:
//
//	go test ./checker -run '^$' -fuzz '^FuzzSemaphore$' -fuzztime 1m

// fuzzKind compares the sweep of one kind of lock with the two searches.
func fuzzKind(f *testing.F, kind search.Kind) {
	p := newProof(kind)
	fuzzChoices(f, func(t *testing.T, made []byte) {
		h := p.draw.drawFrom(made)
		if err := p.compare(h); err != nil {
			t.Fatalf("%v (permits %d)\n%s%s", err, p.draw.permits, dump(h), tokensOf(h))
		}
		judgeAll(t, h)
	})
}

// fuzzProperty compares the checker of one property with brute force.
func fuzzProperty(f *testing.F, p property.Name) {
	rivals := newRivals(p)
	fuzzChoices(f, func(t *testing.T, made []byte) {
		r := rivals[0]
		if len(made) > 0 {
			r = rivals[int(made[0])%len(rivals)]
			made = made[1:]
		}
		h := r.draw.drawFrom(made)
		if err := r.compare(h); err != nil {
			t.Fatalf("%v (%s, permits %d)\n%s%s", err, r.draw.kind, r.draw.permits, dump(h), tokensOf(h))
		}
		judgeAll(t, h)
	})
}

func fuzzChoices(f *testing.F, try func(t *testing.T, made []byte)) {
	f.Add([]byte{})
	f.Add(slices.Repeat([]byte{200}, 60))
	f.Add(slices.Repeat([]byte{1, 90, 250, 30}, 20))
	f.Fuzz(try)
}

// judgeAll judges by every property: none may panic, and the sweep and the search may not disagree.
func judgeAll(t *testing.T, h *history.History) {
	t.Helper()
	for _, r := range Judge(h, property.Options{Search: 200 * time.Millisecond}).Results {
		if strings.Contains(r.Summary, "defect") {
			t.Fatalf("%s: %s\n%s", r.Property, r.Summary, dump(h))
		}
	}
}

func FuzzMutex(f *testing.F) { fuzzKind(f, search.PlainMutex) }

func FuzzReentrantMutex(f *testing.F) { fuzzKind(f, search.ReentrantMutex) }

func FuzzFencedMutex(f *testing.F) { fuzzKind(f, search.FencedMutex) }

func FuzzReentrantFencedMutex(f *testing.F) { fuzzKind(f, search.ReentrantFenced) }

func FuzzSemaphore(f *testing.F) { fuzzKind(f, search.Semaphore) }

func FuzzReadersWriterLock(f *testing.F) { fuzzKind(f, search.ReadersWriter) }

func FuzzPermits(f *testing.F) { fuzzProperty(f, property.Permits) }

func FuzzReadersWriter(f *testing.F) { fuzzProperty(f, property.ReadersWriter) }

func FuzzFencing(f *testing.F) { fuzzProperty(f, property.Fencing) }

func FuzzHoldCount(f *testing.F) { fuzzProperty(f, property.HoldCount) }

// FuzzNotation checks that a text can be written as JSON lines and read back unchanged, and that every checker judges
// it.
func FuzzNotation(f *testing.F) {
	f.Add(paused)
	f.Add("client 0 acquire a 1-2 ok permits=3 limit=4 mode=read lease=2s valid=1s count=-1\nclient 0 release a 2-3 fail")
	f.Add("client 2 touch k 1 ok token=18446744073709551615 read=1 found=0 seen=3 fenced\n" +
		"probe k 4 fail\nleftover k 5 waiters=1")
	f.Add("clients 3\nclient 7 try k 90-99 fail code=held\n" +
		"client 1 renew k 1-2 info\nclient 1 crash 3\nclient 1 lost k 4")
	f.Fuzz(func(t *testing.T, text string) {
		events, _, err := foreign.ReadTextEvents(strings.NewReader(text), "fuzz")
		if err != nil || len(events) > 200 {
			return
		}
		var lines []byte
		for i := range events {
			lines = append(events[i].AppendJSON(lines), '\n')
		}
		again := 0
		_, err = history.Scan(bytes.NewReader(lines), "fuzz", func(e *history.Event, _ int) error {
			if diff := cmp.Diff(events[again], *e); diff != "" {
				t.Fatalf("event %d, written and read again (-want +got):\n%s", again, diff)
			}
			again++
			return nil
		})
		if err != nil || again < len(events) {
			t.Fatalf("event %d cannot be read again: %v\n%s", again, err, lines)
		}
		h, err := foreign.ReadText(strings.NewReader(text), "fuzz")
		if err != nil {
			t.Fatal(err)
		}
		judgeAll(t, h)
	})
}
