package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// A status line appears after statusDelay and is redrawn every redrawEvery. A
// log gets a line every logEvery: one each 100 ms floods CI logs (grafana/k6#1376).
const (
	statusDelay = 2 * time.Second
	redrawEvery = 200 * time.Millisecond
	logEvery    = 10 * time.Second
)

// status is the progress of some work.
type status struct {
	text        string // what is being done
	done, total int64  // parts of the work; total 0: unknown
	count       int64  // of noun, from which the rate is computed
	noun        string // singular; empty: nothing is counted
	more        string // appended
}

// statusLine shows on standard error how far long work is: one line that is
// redrawn on a terminal, a line every ten seconds in a log.
type statusLine struct {
	out    io.Writer
	width  int // of the terminal; 0: a log
	status func() status

	begun, next time.Time
	every       time.Duration
	last        status // at lastAt, for the rate
	lastAt      time.Time
	mu          sync.Mutex
	drawn       bool

	stop, stopped chan struct{}
}

// showStatus starts a status line. It calls current from a goroutine of its own until end.
func showStatus(s streams, current func() status) *statusLine {
	l := newStatusLine(s.err, liveWidth(s.err), current, time.Now())
	l.stop, l.stopped = make(chan struct{}), make(chan struct{})
	go l.watch()
	return l
}

func newStatusLine(out io.Writer, width int, current func() status, now time.Time) *statusLine {
	l := &statusLine{out: out, width: width, status: current, begun: now, lastAt: now, every: logEvery}
	l.next = now.Add(logEvery)
	if width > 0 {
		l.every, l.next = redrawEvery, now.Add(statusDelay)
	}
	return l
}

func (l *statusLine) watch() {
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
func (l *statusLine) tick(now time.Time) {
	if now.Before(l.next) {
		return
	}
	l.next = now.Add(l.every)
	s := l.status()
	text := l.line(s, now)
	if l.last.text != s.text || now.Sub(l.lastAt) >= time.Second {
		l.last, l.lastAt = s, now
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.width == 0 {
		fmt.Fprintln(l.out, text)
		return
	}
	fmt.Fprintf(l.out, "\r%s\x1b[K", fit(text, l.width))
	l.drawn = true
}

// line is "  12.0s  reading: 41 %, 812,345 events, 1,200,000 events/s".
func (l *statusLine) line(s status, now time.Time) string {
	var parts []string
	if s.total > 0 {
		parts = append(parts, fmt.Sprintf("%d %%", min(100, 100*s.done/s.total)))
	}
	if s.noun != "" {
		parts = append(parts, format.Count(s.count, s.noun))
		past := now.Sub(l.lastAt)
		if past > 0 && (l.last.text == s.text || l.last.text == "") && s.count > l.last.count {
			rate := int64(float64(s.count-l.last.count)/past.Seconds() + 0.5)
			parts = append(parts, format.Count(rate, s.noun)+"/s")
		}
	}
	if s.more != "" {
		parts = append(parts, s.more)
	}
	text := format.Elapsed(now.Sub(l.begun)) + "  " + cmp.Or(format.Line(s.text), "working")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// end stops and erases the line. It may be called more than once.
func (l *statusLine) end() {
	if l.stop != nil {
		close(l.stop)
		<-l.stopped
		l.stop = nil
	}
	l.above(func() {})
}

// above erases the line and calls write, whose output stays above the next line.
func (l *statusLine) above(write func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drawn {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
	l.drawn = false
	write()
}
