package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
)

const finalText = `
clients 2
client 0 acquire orders 1.0-1.1 ok owner=a permits=2 limit=5
client 1 acquire orders 1.0-2.0 fail owner=b code=timeout
client 0 acquire other 2.1-2.2 info owner=c permits=1
client 1 acquire third 2.3-2.4 fail owner=d code=unreachable
probe orders 5 fail
leftover orders 6 keys=x,y waiters=1 permits=2 renewals=3
leftover other 6`

// TestFinalEvents: probes and leftovers are read from text and from JSON lines.
func TestFinalEvents(t *testing.T) {
	h, err := foreign.ReadText(strings.NewReader(finalText), "text")
	if err != nil {
		t.Fatal(err)
	}
	full := history.LeftoverValue{Keys: []string{"x", "y"}, Waiters: 1, Permits: 2, Renewals: 3}
	wantLeftovers := []history.Leftover{
		{LeftoverValue: full, Time: 6 * time.Second, Index: 9}, {Time: 6 * time.Second, Index: 10, Key: 1},
	}
	check := func(what string, h *history.History) {
		t.Helper()
		if diff := cmp.Diff(wantLeftovers, h.Leftovers); diff != "" {
			t.Errorf("%s: leftovers (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff([]history.Probe{{Time: 5 * time.Second, Index: 8, Outcome: history.Fail}}, h.Probes); diff != "" {
			t.Errorf("%s: probes (-want +got):\n%s", what, diff)
		}
		limits := []int32{h.Limit(0), h.Limit(1), h.Limit(2), h.Limit(99)}
		if diff := cmp.Diff([]int32{5, history.UnknownLimit, 0, 0}, limits); diff != "" {
			t.Errorf("%s: limits (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff([]int32{1}, h.TimedOut); diff != "" {
			t.Errorf("%s: timed out (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff([]history.Unknown{{Time: 2200 * time.Millisecond, Span: 2}}, h.Unknown); diff != "" {
			t.Errorf("%s: unknown (-want +got):\n%s", what, diff)
		}
		if len(h.Faults) != 0 || len(h.Problems) != 0 {
			t.Errorf("%s: faults %v, problems %v", what, h.Faults, h.Problems)
		}
	}
	check("text", h)
	events, _, err := foreign.ReadTextEvents(strings.NewReader(finalText), "text")
	if err != nil {
		t.Fatal(err)
	}
	var lines []byte
	for i := range events {
		lines = append(events[i].AppendJSON(lines), '\n')
	}
	fromLines, err := history.ReadAll(strings.NewReader(string(lines)), "lines")
	if err != nil {
		t.Fatal(err)
	}
	check("lines", fromLines)
	copied := events[9].Clone()
	copied.Value.Left.Keys[0] = "changed"
	if events[9].Value.Left.Keys[0] != "x" {
		t.Error("a clone shares the keys of a leftover")
	}
}

func TestFinalEventErrors(t *testing.T) {
	for _, line := range []string{"probe orders", "probe orders x ok", "probe orders 1 maybe", "leftover orders 1 what=1",
		"leftover orders 1 waiters=x"} {
		if _, err := foreign.ReadText(strings.NewReader(line), "text"); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

// TestTooManyPermits: numbers of permits that do not fit do not wrap around; the size of the semaphore is unknown, and
// a problem says why.
func TestTooManyPermits(t *testing.T) {
	h, err := foreign.ReadText(strings.NewReader(`
client 0 acquire a 1.0-1.1 ok permits=4294967297 limit=4294967297 count=4294967297
client 0 acquire a 1.2-1.3 ok permits=1 limit=5
client 1 acquire b 1.0-1.1 ok permits=2147483647 limit=2147483647`), "text")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := h.Limit(0), h.Limit(1); a != history.UnknownLimit || b != history.MaxPermits {
		t.Errorf("limits %d and %d, want %d and %d", a, b, history.UnknownLimit, history.MaxPermits)
	}
	if s := h.Spans[0]; s.Permits != history.MaxPermits || s.Count <= 1 {
		t.Errorf("%d permits and count %d", s.Permits, s.Count)
	}
	if len(h.Problems) != 1 || !strings.Contains(h.Problems[0].Text, "4294967297 permits exceed the maximum") {
		t.Errorf("problems %v", h.Problems)
	}
}

// TestLimitOfFailedResize: a resize that failed has set no size, unless another one may have set it.
func TestLimitOfFailedResize(t *testing.T) {
	for text, want := range map[string]int32{
		"client 0 resize a 1.0-1.1 ok limit=5\nclient 0 resize a 1.2-1.3 fail limit=7":            5,
		"client 0 acquire a 1.0-1.1 ok limit=3\nclient 0 resize a 1.2-1.3 fail limit=7":           3,
		"client 0 resize a 1.0-1.1 fail limit=7":                                                  0,
		"client 0 resize a 1.0-1.1 fail":                                                          0,
		"client 0 resize a 1.0-1.1 info limit=6\nclient 1 resize a 1.2-1.3 fail limit=7":          6,
		"client 0 resize a 1.0-1.4 ok limit=7\nclient 1 resize a 1.2-1.3 fail limit=7":            7,
		"client 0 resize a 1.0-1.1 fail limit=7\nclient 0 acquire a 1.2-1.3 ok permits=1":         history.UnknownLimit,
		"client 0 acquire a 1.0-1.1 ok permits=7 limit=7\nclient 1 resize a 1.2-1.3 fail limit=7": 7,
	} {
		h, err := foreign.ReadText(strings.NewReader("clients 2\n"+text), "text")
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Limit(0); got != want {
			t.Errorf("%s: limit %d, want %d", text, got, want)
		}
	}
}
