package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// round is the result of one subject in one round.
type round struct {
	perSecond, perGrant float64       // grants per second; commands per grant
	p50, p99, max       time.Duration // max is over all rounds
	starved             int           // goroutines that were never granted the lock, or not again; the worst round counts
	goroutines          int
	heap                uint64 // bytes more than before
	took                time.Duration
	client, server      time.Duration // CPU time of one grant
}

// medians are the medians of each figure separately, except for max and starved: the highest of all rounds counts.
func medians(rounds []round) round {
	return round{
		perSecond: median(rounds, func(r round) float64 { return r.perSecond }),
		perGrant:  median(rounds, func(r round) float64 { return r.perGrant }),
		p50:       median(rounds, func(r round) time.Duration { return r.p50 }),
		p99:       median(rounds, func(r round) time.Duration { return r.p99 }),
		max:       slices.MaxFunc(rounds, func(a, b round) int { return cmp.Compare(a.max, b.max) }).max,
		starved:   slices.MaxFunc(rounds, func(a, b round) int { return a.starved - b.starved }).starved,

		goroutines: median(rounds, func(r round) int { return r.goroutines }),
		heap:       median(rounds, func(r round) uint64 { return r.heap }),
		took:       median(rounds, func(r round) time.Duration { return r.took }),
		client:     median(rounds, func(r round) time.Duration { return r.client }),
		server:     median(rounds, func(r round) time.Duration { return r.server }),
	}
}

func median[T int | uint64 | float64 | time.Duration](rounds []round, of func(round) T) T {
	all := make([]T, 0, len(rounds))
	for _, r := range rounds {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// load is n goroutines that acquire and release, for span, or once each if span is 0; key returns the lock of the
// i-th one; hold is how long they hold it.
type load struct {
	n    int
	span time.Duration
	hold time.Duration
	key  func(i int) string
	// pairs measures acquire and release together, instead of the wait for the grant.
	pairs bool
	drain time.Duration
}

// How long after the end of a round waiters may still be granted the lock. A waiter without a grant by then has
// starved.
const (
	drainContended = 15 * time.Second // longer than any limit of a subject
	drainFree      = 2 * time.Second  // without contention
)

// apply runs l on s.
func apply(ctx context.Context, srv *server, s subject, l load) (round, error) {
	if err := srv.reset(ctx); err != nil {
		return round{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.span+l.drain)
	defer cancel()
	var stop atomic.Bool
	if l.span > 0 {
		defer time.AfterFunc(l.span, func() { stop.Store(true) }).Stop()
	}
	watch := watchResources()
	own, theirs := ownCPU(), srv.cpu(ctx)
	start := time.Now()
	done := make(chan worked, l.n)
	for i := range l.n {
		go func() {
			var w worked
			w.took, w.served, w.err = l.work(ctx, s, i, &stop)
			done <- w
		}()
	}
	all, err := collect(done, l.n, l.span+l.drain+stuckAfter)
	var r round
	r.goroutines, r.heap = watch()
	var took [][]time.Duration
	for _, w := range all {
		took = append(took, w.took)
		r.took = max(r.took, w.served.Sub(start)) // a goroutine that is stuck since then has starved
		if errors.Is(w.err, errStarved) {
			r.starved++
		} else if w.err != nil {
			err = w.err
		}
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", s.name, err)
	}
	sent, err := srv.calls(context.WithoutCancel(ctx), s.sets)
	r.sum(took, sent)
	if n := r.grants(took); n > 0 {
		r.client, r.server = (ownCPU()-own)/n, (srv.cpu(context.WithoutCancel(ctx))-theirs)/n
	}
	return r, err
}

// worked is the result of one goroutine of a load; served is the time of its last release.
type worked struct {
	took   []time.Duration
	served time.Time
	err    error
}

// stuckAfter is how long a goroutine may outlast the context of its calls.
const stuckAfter = 20 * time.Second

// errStuck means that a call of a subject has not returned although its context ended long ago.
var errStuck = errors.New("a call did not return when its context had ended")

// collect waits for n goroutines, but no longer than limit.
func collect(done <-chan worked, n int, limit time.Duration) ([]worked, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var all []worked
	for range n {
		select {
		case w := <-done:
			all = append(all, w)
		case <-timer.C:
			return all, errStuck
		}
	}
	return all, nil
}

// errStarved means that a goroutine was still waiting at the end of the round.
var errStarved = errors.New("not granted in time")

// work is one goroutine of l; served is the time of its last release.
func (l load) work(
	ctx context.Context, s subject, i int, stop *atomic.Bool,
) (took []time.Duration, served time.Time, err error) {
	key := l.key(i)
	for !stop.Load() && (l.span > 0 || len(took) == 0) {
		start := time.Now()
		release, err := s.acquire(ctx, key)
		waited := time.Since(start)
		if err != nil && (ctx.Err() != nil || timedOut(err)) {
			return append(took, waited), served, errStarved
		}
		if err != nil {
			return took, served, err
		}
		if l.hold > 0 {
			time.Sleep(l.hold)
		}
		if err := release(); err != nil && ctx.Err() == nil && !timedOut(err) {
			return took, served, err
		}
		served = time.Now()
		if l.pairs {
			waited = served.Sub(start)
		}
		took = append(took, waited)
	}
	return took, served, nil
}

// timedOut reports whether the server did not reply in time: on a busy machine a thousand pollers
// overload it.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func (r *round) grants(took [][]time.Duration) time.Duration {
	n := -r.starved
	for _, t := range took {
		n += len(t)
	}
	return time.Duration(n)
}

func (r *round) sum(took [][]time.Duration, sent int64) {
	var all []time.Duration
	for _, t := range took {
		if len(t) == 0 {
			r.starved++
		}
		all = append(all, t...)
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	r.p50, r.p99, r.max = at(all, 50), at(all, 99), all[len(all)-1]
	r.perSecond = float64(len(all)) / max(r.took, time.Millisecond).Seconds()
	r.perGrant = float64(sent) / float64(len(all))
}

// watchResources samples goroutines and the heap until the returned function is called, which returns their largest
// growth.
func watchResources() func() (goroutines int, heap uint64) {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	idle := runtime.NumGoroutine()
	done, out := make(chan struct{}), make(chan [2]uint64)
	go func() {
		var peak [2]uint64
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak[0] = max(peak[0], uint64(max(0, runtime.NumGoroutine()-idle-1)))
			if now.HeapInuse > before.HeapInuse {
				peak[1] = max(peak[1], now.HeapInuse-before.HeapInuse)
			}
			select {
			case <-tick.C:
			case <-done:
				out <- peak
				return
			}
		}
	}()
	return func() (int, uint64) {
		close(done)
		peak := <-out
		return int(peak[0]), peak[1]
	}
}

// inTurns measures every subject once in each round and returns the rounds of each subject. One that hangs is left out
// from then on, and all of its goroutines count as starved.
func inTurns(ctx context.Context, srv *server, all []subject, rounds int, l load) ([][]round, error) {
	got := make([][]round, len(all))
	stuck := make([]bool, len(all))
	for n := range rounds {
		for i := range all {
			at := (i + n) % len(all) // no subject is always first
			r := round{starved: l.n}
			var err error
			if !stuck[at] {
				r, err = apply(ctx, srv, all[at], l)
			}
			if errors.Is(err, errStuck) {
				fmt.Fprintf(os.Stderr, "bench: %v: left out\n", err)
				r, stuck[at] = round{starved: l.n}, true
			} else if err != nil {
				return nil, err
			}
			got[at] = append(got[at], r)
		}
	}
	return got, nil
}

// ratio is the median over the rounds of a's grants divided by b's: a short slowdown of the machine slows down both.
func ratio(a, b []round) float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i].perSecond / max(b[i].perSecond, 1)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// part is the median over the rounds of a duration of a divided by the same of b.
func part(a, b []round, of func(round) time.Duration) float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = float64(of(a[i])) / float64(max(of(b[i]), 1))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// table prints rows under a header.
func table(title string, head string, rows []string) {
	fmt.Printf("\n%s (load average %s)\n", title, loadAverage())
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, head+"\t")
	for _, row := range rows {
		fmt.Fprintln(w, row+"\t")
	}
	w.Flush()
}

func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}
