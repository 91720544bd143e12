package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// round is what one subject did in one round.
type round struct {
	perSecond, perGrant float64 // grants per second; commands per grant
	p50, p99            time.Duration
	starved             int // goroutines that got nothing, or nothing more; the worst round counts
	goroutines          int
	heap                uint64 // bytes more than before
	took                time.Duration
}

// medians are the medians of each figure on its own.
func medians(rounds []round) round {
	return round{
		perSecond: median(rounds, func(r round) float64 { return r.perSecond }),
		perGrant:  median(rounds, func(r round) float64 { return r.perGrant }),
		p50:       median(rounds, func(r round) time.Duration { return r.p50 }),
		p99:       median(rounds, func(r round) time.Duration { return r.p99 }),
		starved:   slices.MaxFunc(rounds, func(a, b round) int { return a.starved - b.starved }).starved,

		goroutines: median(rounds, func(r round) int { return r.goroutines }),
		heap:       median(rounds, func(r round) uint64 { return r.heap }),
		took:       median(rounds, func(r round) time.Duration { return r.took }),
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

// load is n goroutines that take and give back, for span, or each once if span
// is 0; key says which lock the i-th of them wants; hold is how long it is held.
type load struct {
	n    int
	span time.Duration
	hold time.Duration
	key  func(i int) string
	// pairs measures acquire and release together, instead of the wait for the grant.
	pairs bool
	drain time.Duration
}

// For how long after the end of a round those who still wait are waited for. Who has
// nothing by then is starved, and so is who got nothing at all.
const (
	drainContended = 15 * time.Second // longer than any subject's own bounds
	drainFree      = 2 * time.Second  // nobody else has the lock
)

// apply puts l on s and says what came of it.
func apply(ctx context.Context, srv *server, s subject, l load) (round, error) {
	if err := srv.fresh(ctx); err != nil {
		return round{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.span+l.drain)
	defer cancel()
	var stop atomic.Bool
	if l.span > 0 {
		defer time.AfterFunc(l.span, func() { stop.Store(true) }).Stop()
	}
	took := make([][]time.Duration, l.n)
	errs := make([]error, l.n)
	watch := look()
	begun := time.Now()
	served := make([]time.Time, l.n) // the last time
	var wg sync.WaitGroup
	for i := range l.n {
		wg.Go(func() { took[i], served[i], errs[i] = l.work(ctx, s, i, &stop) })
	}
	wg.Wait()
	r := round{took: slices.MaxFunc(served, time.Time.Compare).Sub(begun)} // who is stuck then is starved
	r.goroutines, r.heap = watch()
	for _, err := range errs {
		switch {
		case errors.Is(err, errStarved):
			r.starved++
		case err != nil:
			return r, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	sent, err := srv.calls(context.WithoutCancel(ctx), s.sets)
	r.sum(took, sent)
	return r, err
}

// errStarved says that a goroutine was still waiting when the round was over.
var errStarved = errors.New("not served in time")

// work is what one goroutine does; served is when it was done for the last time.
func (l load) work(
	ctx context.Context, s subject, i int, stop *atomic.Bool,
) (took []time.Duration, served time.Time, err error) {
	key := l.key(i)
	for !stop.Load() && (l.span > 0 || len(took) == 0) {
		asked := time.Now()
		release, err := s.acquire(ctx, key)
		waited := time.Since(asked)
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
			waited = served.Sub(asked)
		}
		took = append(took, waited)
	}
	return took, served, nil
}

// timedOut is whether the server did not answer in time: on a machine that is busy, to be
// asked by a thousand who poll is more than it can do.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
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
	r.p50, r.p99 = all[len(all)/2], all[len(all)*99/100]
	r.perSecond = float64(len(all)) / max(r.took, time.Millisecond).Seconds()
	r.perGrant = float64(sent) / float64(len(all))
}

// look watches goroutines and the heap until what it returns is called, which
// says by how much they grew at most.
func look() func() (goroutines int, heap uint64) {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	idle := runtime.NumGoroutine()
	done, out := make(chan struct{}), make(chan [2]uint64)
	go func() {
		var most [2]uint64
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most[0] = max(most[0], uint64(max(0, runtime.NumGoroutine()-idle-1)))
			if now.HeapInuse > before.HeapInuse {
				most[1] = max(most[1], now.HeapInuse-before.HeapInuse)
			}
			select {
			case <-tick.C:
			case <-done:
				out <- most
				return
			}
		}
	}()
	return func() (int, uint64) {
		close(done)
		most := <-out
		return int(most[0]), most[1]
	}
}

// inTurns measures every subject once in each round; what it returns is of each subject all rounds.
func inTurns(ctx context.Context, srv *server, all []subject, rounds int, l load) ([][]round, error) {
	got := make([][]round, len(all))
	for n := range rounds {
		for i := range all {
			at := (i + n) % len(all) // nobody is always first
			r, err := apply(ctx, srv, all[at], l)
			if err != nil {
				return nil, err
			}
			got[at] = append(got[at], r)
		}
	}
	return got, nil
}

// times is how many times as many grants a made in a round as b: the median over
// the rounds, for what slows the machine down for a while slows down both.
func times(a, b []round) float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i].perSecond / max(b[i].perSecond, 1)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// table prints rows under a head.
func table(title string, head string, rows []string) {
	fmt.Printf("\n%s\n", title)
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
