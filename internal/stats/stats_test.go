package stats

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
)

// span is an operation from call to end, in milliseconds.
func span(op history.Op, call, end int, outcome history.Type) history.Span {
	return history.Span{Op: op, Outcome: outcome, Call: ms(call), Return: ms(end)}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func held(from, until int) Held { return Held{Interval: Interval{ms(from), ms(until)}} }

func TestLatenciesCountSuccessOnly(t *testing.T) {
	h := &history.History{Spans: []history.Span{
		span(history.OpAcquire, 0, 10, history.OK), span(history.OpAcquire, 0, 30, history.OK),
		span(history.OpAcquire, 0, 500, history.Fail), span(history.OpAcquire, 0, 900, history.Info),
		span(history.OpRelease, 40, 41, history.OK), span(history.OpTry, 50, 60, history.Fail),
	}}
	want := []Latency{{Op: "acquire", N: 2, P50: ms(10), P90: ms(30), P99: ms(30), Max: ms(30)},
		{Op: "release", N: 1, P50: ms(1), P90: ms(1), P99: ms(1), Max: ms(1)}}
	if diff := cmp.Diff(want, Latencies(h)); diff != "" {
		t.Errorf("latencies (-want +got):\n%s", diff)
	}
}

func TestLongestFree(t *testing.T) {
	for name, tt := range map[string]struct {
		spans []history.Span
		holds []Held
		want  Interval
	}{
		"nobody waits":     {nil, []Held{held(0, 10), held(300, 310)}, Interval{}},
		"a waiter, free":   {[]history.Span{span(history.OpAcquire, 5, 60, history.OK)}, []Held{held(0, 20), held(60, 70)}, Interval{ms(20), ms(60)}},
		"unknown outcome":  {[]history.Span{span(history.OpAcquire, 5, 60, history.Info)}, []Held{held(0, 20)}, Interval{}},
		"held by the next": {[]history.Span{span(history.OpAcquire, 5, 60, history.OK)}, []Held{held(0, 20), held(20, 70)}, Interval{}},
	} {
		if got := LongestFree(&history.History{Spans: tt.spans}, tt.holds); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestThreshold(t *testing.T) {
	h := &history.History{Spans: []history.Span{
		span(history.OpAcquire, 0, 10, history.OK), span(history.OpAcquire, 5, 60, history.OK),
	}}
	holds := []Held{held(10, 20), held(60, 70)}
	for text, want := range map[string]struct {
		actual string
		met    bool
	}{
		"acquire.max < 60ms":           {"55 ms", true},
		"acquire.max<55ms":             {"55 ms", false},
		"acquire.max <= 55ms":          {"55 ms", true},
		"acquire.count >= 3":           {"2", false},
		"acquire.count > 1":            {"2", true},
		"renew.count >= 0":             {"0", true},
		"renew.p99 < 1s":               {"", false},
		"free_while_waited.max < 40ms": {"40 ms", false},
	} {
		limit, err := ParseThreshold(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if actual, met := limit.Test(h, holds); actual != want.actual || met != want.met {
			t.Errorf("%s: %q, met %v; want %q, %v", text, actual, met, want.actual, want.met)
		}
	}
}

func TestBadThresholds(t *testing.T) {
	for text, want := range map[string]string{
		"fast":                 "is not a threshold",
		"acquire.p99 = 2s":     "is not a threshold",
		"acquired.p99 < 2s":    "did you mean acquire.p99?",
		"acquire.p99 < 2":      "compared with a duration",
		"acquire.count < 2s":   "compared with a number",
		"acquire.p99 < -2s":    "never negative",
		"acquire.p99 < 2s, 3s": "is not a threshold",
	} {
		if _, err := ParseThreshold(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}
