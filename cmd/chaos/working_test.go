package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestWorking drives the clock by hand.
func TestWorking(t *testing.T) {
	reading := func(percent int64) stage {
		return stage{text: "reading", done: percent, total: 100, count: percent * 1000, noun: "events"}
	}
	tests := []struct {
		name  string
		width int
		at    []time.Duration // of the ticks, and per cent then
		part  []int64
		want  string
	}{
		{"a log says nothing for ten seconds", 0, []time.Duration{5 * time.Second}, []int64{50}, ""},
		{"a log gets a line each ten seconds", 0, []time.Duration{10 * time.Second, 15 * time.Second, 20 * time.Second},
			[]int64{20, 30, 40}, "  10.0s  reading: 20 %, 20000 events, 2000 events/s\n" +
				"  20.0s  reading: 40 %, 40000 events, 2000 events/s\n"},
		{"a terminal is left alone for two seconds", 80, []time.Duration{1900 * time.Millisecond}, []int64{90}, ""},
		{"a terminal is painted again", 80, []time.Duration{2 * time.Second, 3 * time.Second}, []int64{10, 20},
			"\r   2.0s  reading: 10 %, 10000 events, 5000 events/s\x1b[K" +
				"\r   3.0s  reading: 20 %, 20000 events, 10000 events/s\x1b[K\r\x1b[K"},
		{"a narrow terminal", 12, []time.Duration{2 * time.Second}, []int64{10}, "\r   2.0s  re\x1b[K\r\x1b[K"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			now := stage{}
			begin := time.Unix(0, 0)
			w := newWorking(&out, test.width, func() stage { return now }, begin)
			for i, at := range test.at {
				now = reading(test.part[i])
				w.tick(begin.Add(at))
			}
			w.end()
			if got := out.String(); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// TestWorkingEnds shows that nothing is written any more after end.
func TestWorkingEnds(t *testing.T) {
	var out bytes.Buffer
	asked := make(chan bool, 1000)
	w := work(streams{err: &out}, func() stage { asked <- true; return stage{text: "x"} })
	w.end()
	if len(asked) > 0 || out.Len() > 0 || strings.Contains(out.String(), "x") {
		t.Errorf("asked %d times, wrote %q", len(asked), out.String())
	}
}
