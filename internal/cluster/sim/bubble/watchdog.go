package bubble

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

// Watchdog detects that virtual time has stalled, and the goroutines that cause it. Its Watch runs outside the
// bubble, its Beat inside. The zero value is ready to use.
type Watchdog struct {
	beats atomic.Int64
}

// Stall is an interval of real time in which virtual time did not pass.
type Stall struct {
	For  time.Duration // real time without a beat
	Who  []Goroutine   // goroutines of the bubble that are not durably blocked
	Busy bool          // at least one goroutine was running: it may be long work, and no stall
}

// Goroutine is a goroutine that is not durably blocked.
type Goroutine struct {
	ID     string
	State  string   // as the runtime prints it: "sync.Mutex.Lock", "IO wait", "running"
	Frames []string // function and file:line, innermost first; without the Go library's, unless there are no others
}

// topFrames is how many frames of a goroutine are reported.
const topFrames = 4

// beatEvery is the virtual time between two beats: short beside a run, long beside its events.
const beatEvery = 100 * time.Millisecond

// Beat counts beats in virtual time until ctx ends. Run it in a goroutine of the bubble, and end it before the
// bubble ends.
func (w *Watchdog) Beat(ctx context.Context) {
	t := time.NewTicker(beatEvery)
	defer t.Stop()
	for {
		w.beats.Add(1)
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// Watch checks the beats until ctx ends, in real time: run it outside the bubble. It calls report when there was no
// beat for limit, and again after each further limit: the first report may have been of long work. It starts with
// the first beat. Time in which Watch itself did not run (the program was stopped, the machine was busy) does not
// count, because the bubble did not run either.
func (w *Watchdog) Watch(ctx context.Context, limit time.Duration, report func(Stall)) {
	every := max(limit/4, time.Millisecond)
	t := time.NewTicker(every)
	defer t.Stop()
	last, quiet, patience, looked := int64(0), time.Duration(0), limit, time.Now()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		passed := min(time.Since(looked), every)
		looked = time.Now()
		if now := w.beats.Load(); now != last || now == 0 {
			last, quiet, patience = now, 0, limit
			continue
		}
		if quiet += passed; quiet >= patience {
			patience = quiet + limit
			report(stall(quiet))
		}
	}
}

func stall(stalled time.Duration) Stall {
	s := Stall{For: stalled, Who: culprits(stacks())}
	for _, g := range s.Who {
		s.Busy = s.Busy || g.State == "running" || g.State == "runnable"
	}
	return s
}

// Advice lists the goroutines that stall virtual time, and the remedy.
func (s Stall) Advice() string {
	var b strings.Builder
	fmt.Fprintf(&b, "virtual time has stalled for %v", s.For.Round(time.Millisecond))
	if len(s.Who) == 0 {
		b.WriteString("; no goroutine of the simulation appears to cause it")
	}
	for _, g := range s.Who {
		fmt.Fprintf(&b, "\n  goroutine %s waits in %q", g.ID, g.State)
		for _, f := range g.Frames {
			fmt.Fprintf(&b, "\n    %s", f)
		}
	}
	b.WriteString("\nCode in a simulation must not do real input or output (DNS included), and must not wait for a " +
		"sync.Mutex whose holder waits for a reply; run such code on real servers instead.")
	return b.String()
}

// stacks is the output of runtime.Stack for all goroutines.
func stacks() string {
	for buf := make([]byte, 1<<20); ; buf = make([]byte, 2*len(buf)) {
		if n := runtime.Stack(buf, true); n < len(buf) {
			return string(buf[:n])
		}
	}
}

// culprits finds, in the text of runtime.Stack, the goroutines of bubbles that are not durably blocked.
func culprits(text string) []Goroutine {
	return bubbled(text, func(state string) bool { return !strings.Contains(state, "(durable)") })
}

// remaining lists the goroutines that a bubble has left behind. Those of other bubbles may be among them.
func remaining() string {
	var b strings.Builder
	for i, g := range bubbled(stacks(), func(string) bool { return true }) {
		if i == maxReported {
			b.WriteString("\n  and more")
			break
		}
		fmt.Fprintf(&b, "\n  goroutine %s waits in %q at %s", g.ID, g.State, strings.Join(g.Frames, " < "))
	}
	return b.String()
}

// maxReported is how many goroutines are listed.
const maxReported = 8

// bubbled finds the goroutines of bubbles whose state want accepts.
func bubbled(text string, want func(state string) bool) []Goroutine {
	var all []Goroutine
	for block := range strings.SplitSeq(text, "\n\n") {
		head, rest, _ := strings.Cut(block, "\n")
		id, state, ok := strings.Cut(strings.TrimSuffix(head, ":"), " [")
		if !ok || !strings.Contains(state, "synctest bubble") || strings.Contains(state, "synctest.Run") || !want(state) {
			continue
		}
		state, _, _ = strings.Cut(strings.TrimSuffix(state, "]"), ",")
		all = append(all, Goroutine{ID: strings.TrimPrefix(id, "goroutine "), State: state, Frames: frames(rest)})
	}
	return all
}

// frames is the innermost frames of a stack outside the Go library, or inside
// it if there are no others.
func frames(stack string) []string {
	var users, all []string
	lines := strings.Split(stack, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		function := lines[i]
		if j := strings.LastIndex(function, "("); j > 0 {
			function = function[:j]
		}
		place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
		frame := function + " " + place
		all = append(all, frame)
		if !library(function) {
			users = append(users, frame)
		}
	}
	if len(users) == 0 {
		users = all
	}
	return users[:min(len(users), topFrames)]
}

// library reports whether a function is in the Go library, whose packages have no dot in the first part of their
// path. Functions of main have none either.
func library(function string) bool {
	first, _, deeper := strings.Cut(strings.TrimPrefix(function, "created by "), "/")
	if !deeper {
		first, _, _ = strings.Cut(first, ".")
		return first != "main"
	}
	return !strings.Contains(first, ".")
}
