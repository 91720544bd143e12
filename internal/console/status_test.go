package console

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestStatusLine drives the clock by hand.
func TestStatusLine(t *testing.T) {
	reading := func(percent int64) Status {
		return Status{Text: "reading", Done: percent, Total: 100, Count: percent * 1000, Noun: "event"}
	}
	tests := []struct {
		name  string
		width int
		at    []time.Duration // of the ticks; done is the percentage then
		done  []int64
		want  string
	}{
		{"a log gets no line in the first ten seconds", 0, []time.Duration{5 * time.Second}, []int64{50}, ""},
		{"a log gets a line each ten seconds", 0, []time.Duration{10 * time.Second, 15 * time.Second, 20 * time.Second},
			[]int64{20, 30, 40}, "  10.0s  reading: 20 %, 20,000 events, 2,000 events/s\n" +
				"  20.0s  reading: 40 %, 40,000 events, 2,000 events/s\n"},
		{"a terminal gets no line in the first second", 80, []time.Duration{900 * time.Millisecond}, []int64{90}, ""},
		{"a terminal is redrawn", 80, []time.Duration{2 * time.Second, 3 * time.Second}, []int64{10, 20},
			"\r   2.0s  reading: 10 %, 10,000 events, 5,000 events/s\x1b[K" +
				"\r   3.0s  reading: 20 %, 20,000 events, 10,000 events/s\x1b[K\r\x1b[K"},
		{"a narrow terminal", 12, []time.Duration{2 * time.Second}, []int64{10}, "\r   2.0s  re\x1b[K\r\x1b[K"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			now := Status{}
			begin := time.Unix(0, 0)
			w := newStatusLine(&out, test.width, func() Status { return now }, begin)
			for i, at := range test.at {
				now = reading(test.done[i])
				w.tick(begin.Add(at))
			}
			w.End()
			if got := out.String(); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// TestTextAboveTheStatusLine: text that other goroutines write does not stay in the row of the line.
func TestTextAboveTheStatusLine(t *testing.T) {
	var below bytes.Buffer
	out := NewOutput(&below)
	begin := time.Unix(0, 0)
	w := newStatusLine(out, 80, func() Status { return Status{Text: "reading"} }, begin)
	var notes sync.WaitGroup
	for range 10 {
		notes.Go(func() { _, _ = out.Write([]byte("a note\n")) })
	}
	for i := range 10 {
		w.tick(begin.Add(time.Duration(2+i) * time.Second))
	}
	notes.Wait()
	w.End()
	for row := range strings.Lines(below.String()) {
		shown := strings.ReplaceAll(row[strings.LastIndex(row, "\r")+1:], "\x1b[K", "")
		if shown != "a note\n" && shown != "" { // the last row is erased
			t.Errorf("a row of the terminal is %q", shown)
		}
	}
	if n := strings.Count(below.String(), "a note\n"); n != 10 {
		t.Errorf("%d of 10 notes", n)
	}
}

// TestStatusLineEnds: nothing is written after end.
func TestStatusLineEnds(t *testing.T) {
	var out bytes.Buffer
	calls := make(chan bool, 1000)
	w := ShowStatus(&out, func() Status { calls <- true; return Status{Text: "x"} })
	w.End()
	if len(calls) > 0 || out.Len() > 0 || strings.Contains(out.String(), "x") {
		t.Errorf("called %d times, wrote %q", len(calls), out.String())
	}
}
