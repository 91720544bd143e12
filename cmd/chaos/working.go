package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// patience is how long work may take before a person is told how far it is.
const patience = 2 * time.Second

// stage is how far a piece of work is.
type stage struct {
	text        string // what is being done
	done, total int64  // of the whole; total 0: it is not known how much there is
	count       int64  // of what the speed is told in
	noun        string // what is counted
}

// working tells on standard error how far long work is: on a terminal in one
// line that is painted again, in a log with a line each ten seconds.
type working struct {
	out   io.Writer
	width int // of the terminal; 0: a log
	stage func() stage

	begun, next time.Time
	every       time.Duration
	last        stage // at the time before, for the speed
	lastAt      time.Time
	mu          sync.Mutex
	drawn       bool

	stop, stopped chan struct{}
}

// work begins to tell of work; stage is called on a goroutine of its own until end.
func work(s streams, stage func() stage) *working {
	w := newWorking(s.err, liveWidth(s), stage, time.Now())
	w.stop, w.stopped = make(chan struct{}), make(chan struct{})
	go w.watch()
	return w
}

func newWorking(out io.Writer, width int, stage func() stage, now time.Time) *working {
	w := &working{out: out, width: width, stage: stage, begun: now, lastAt: now, every: heartbeat}
	w.next = now.Add(heartbeat)
	if width > 0 {
		w.every, w.next = 200*time.Millisecond, now.Add(patience)
	}
	return w
}

// liveWidth is the width of a terminal that may be painted on, or 0.
func liveWidth(s streams) int {
	if os.Getenv("CI") != "" || os.Getenv("TERM") == "dumb" {
		return 0
	}
	return terminal(s.err)
}

func (w *working) watch() {
	defer close(w.stopped)
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case now := <-tick.C:
			w.tick(now)
		}
	}
}

// tick tells how far the work is, if it is time to.
func (w *working) tick(now time.Time) {
	if now.Before(w.next) {
		return
	}
	w.next = now.Add(w.every)
	s := w.stage()
	text := w.line(s, now)
	if w.last.text != s.text || now.Sub(w.lastAt) >= time.Second {
		w.last, w.lastAt = s, now
	}
	if w.width == 0 {
		fmt.Fprintln(w.out, text)
		return
	}
	if runes := []rune(text); len(runes) > w.width-1 {
		text = string(runes[:w.width-1])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.out, "\r%s\x1b[K", text)
	w.drawn = true
}

// line is "  12.0s  reading: 41 %, 812345 events, 1.2M events/s".
func (w *working) line(s stage, now time.Time) string {
	var parts []string
	if s.total > 0 {
		parts = append(parts, fmt.Sprintf("%d %%", min(100, 100*s.done/s.total)))
	}
	if s.noun != "" {
		parts = append(parts, fmt.Sprintf("%d %s", s.count, s.noun))
		if past := now.Sub(w.lastAt); past > 0 && (w.last.text == s.text || w.last.text == "") && s.count > w.last.count {
			parts = append(parts, fmt.Sprintf("%.0f %s/s", float64(s.count-w.last.count)/past.Seconds(), s.noun))
		}
	}
	text := fmt.Sprintf("%6.1fs  %s", now.Sub(w.begun).Seconds(), cmp.Or(harmless(s.text), "working"))
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// end leaves the terminal to the result. Nothing is written afterwards.
func (w *working) end() {
	if w.stop != nil {
		close(w.stop)
		<-w.stopped
		w.stop = nil
	}
	w.say(func() {})
}

// say has something else written, above the line.
func (w *working) say(write func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drawn {
		fmt.Fprint(w.out, "\r\x1b[K")
	}
	w.drawn = false
	write()
}
