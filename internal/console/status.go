package console

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// A status line appears after statusDelay and is redrawn every redrawEvery. A
// log gets a line every logEvery: one each 100 ms floods CI logs (grafana/k6#1376).
const (
	statusDelay = time.Second
	redrawEvery = 200 * time.Millisecond
	logEvery    = 10 * time.Second
)

// Status is how far some work is.
type Status struct {
	Text        string // for people: the work
	Done, Total int64  // parts of the work; Total 0: unknown
	Count       int64  // of Noun, from which the rate is computed
	Noun        string // singular; "": nothing is counted
	More        string // appended
}

// StatusLine shows the progress of long work: one line that is redrawn on a terminal, a line every ten seconds in a
// log.
type StatusLine struct {
	out    *Output
	width  int // of the terminal; 0: a log
	status func() Status

	begun, next time.Time
	every       time.Duration
	last        Status // at lastAt, for the rate
	lastAt      time.Time

	stop, stopped chan struct{}
}

// ShowStatus starts a status line on out; other text appears above it if out is an [Output]. It calls current from a
// goroutine of its own until End.
func ShowStatus(out io.Writer, current func() Status) *StatusLine {
	l := newStatusLine(out, liveWidth(out), current, time.Now())
	l.stop, l.stopped = make(chan struct{}), make(chan struct{})
	go l.watch()
	return l
}

func newStatusLine(w io.Writer, width int, current func() Status, now time.Time) *StatusLine {
	out, shared := w.(*Output)
	if !shared {
		out = NewOutput(w)
	}
	l := &StatusLine{out: out, width: width, status: current, begun: now, lastAt: now, every: logEvery}
	l.next = now.Add(logEvery)
	if width > 0 {
		l.every, l.next = redrawEvery, now.Add(statusDelay)
	}
	return l
}

func (l *StatusLine) watch() {
	defer close(l.stopped)
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case now := <-tick.C:
			l.tick(now)
		}
	}
}

// tick writes the line if it is due.
func (l *StatusLine) tick(now time.Time) {
	if now.Before(l.next) {
		return
	}
	l.next = now.Add(l.every)
	s := l.status()
	text := l.line(s, now)
	if l.last.Text != s.Text || now.Sub(l.lastAt) >= time.Second {
		l.last, l.lastAt = s, now
	}
	if l.width == 0 {
		fmt.Fprintln(l.out, text)
		return
	}
	l.out.draw(fit(text, l.width))
}

// line is "  12.0s  reading: 41 %, 812,345 events, 1,200,000 events/s".
func (l *StatusLine) line(s Status, now time.Time) string {
	var parts []string
	if s.Total > 0 {
		parts = append(parts, fmt.Sprintf("%d %%", min(100, 100*s.Done/s.Total)))
	}
	if s.Noun != "" {
		parts = append(parts, format.Count(s.Count, s.Noun))
		past := now.Sub(l.lastAt)
		if past > 0 && (l.last.Text == s.Text || l.last.Text == "") && s.Count > l.last.Count {
			rate := int64(float64(s.Count-l.last.Count)/past.Seconds() + 0.5)
			parts = append(parts, format.Count(rate, s.Noun)+"/s")
		}
	}
	if s.More != "" {
		parts = append(parts, s.More)
	}
	text := format.Elapsed(now.Sub(l.begun)) + "  " + cmp.Or(format.Line(s.Text), "working")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// End stops and erases the line. It may be called more than once.
func (l *StatusLine) End() {
	if l.stop != nil {
		close(l.stop)
		<-l.stopped
		l.stop = nil
	}
	l.out.erase()
}
