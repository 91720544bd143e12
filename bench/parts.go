package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/lock"
)

// pairs measures acquire and release without contention.
func pairs(ctx context.Context, srv *server, c config) error {
	all, err := open(srv.addr, rawScripts, rawCommands, ours, oursFair, rueidisSubject,
		redislockEvery("redislock", 100*time.Millisecond), redsyncSubject)
	if err != nil {
		return err
	}
	defer closeAll(all)
	const oursAt = 2
	for _, n := range []int{1, 64} {
		got, err := inTurns(ctx, srv, all, 2*c.rounds-1, load{n: n, span: c.span / 2, pairs: true, drain: drainFree,
			key: func(i int) string { return fmt.Sprintf("bench-%d", i) }})
		if err != nil {
			return err
		}
		var rows []string
		for i, rounds := range got {
			r := medians(rounds)
			rows = append(rows, fmt.Sprintf("%s\t%.0f\t%.2f\t%.2f\t%s\t%s\t%s\t%d", all[i].name, r.perSecond,
				ratio(rounds, got[0]), ratio(got[oursAt], rounds), short(r.p50), short(r.p99), short(r.max), r.starved))
		}
		table(fmt.Sprintf("Uncontended: goroutines that acquire and release keys of their own: %d", n),
			"lock\tpairs/s\tof raw\tlockchaos/this\tp50\tp99\tmax\tstarved (max)", rows)
	}
	return nil
}

// waiters measures 16 goroutines on one key.
func waiters(ctx context.Context, srv *server, c config) error {
	all, err := open(srv.addr, ours, oursFair, rueidisSubject,
		redislockEvery("redislock", 100*time.Millisecond),
		redislockEvery("redislock-10ms", 10*time.Millisecond), redsyncSubject)
	if err != nil {
		return err
	}
	defer closeAll(all)
	all = c.chosen(all)
	got, err := inTurns(ctx, srv, all, c.rounds, load{
		n: 16, span: c.span, drain: drainContended, hold: time.Millisecond,
		key: func(int) string { return "bench" },
	})
	if err != nil {
		return err
	}
	var rows []string
	for i, rounds := range got {
		r := medians(rounds)
		rows = append(rows, fmt.Sprintf("%s\t%.0f\t%s\t%s\t%.3f\t%s\t%.1f\t%s\t%s\t%d", all[i].name, r.perSecond,
			short(r.p50), short(r.p99), part(got[0], rounds, func(r round) time.Duration { return r.p99 }),
			short(r.max), r.perGrant, short(r.client), short(r.server), r.starved))
	}
	table("16 goroutines on one key, held for 1 ms",
		"lock\tgrants/s\twait p50\twait p99\tlockchaos/this\twait max\tcommands/grant\tclient\tserver\tstarved (max)", rows)
	return nil
}

// crowd measures many goroutines on one key, once each.
func crowd(ctx context.Context, srv *server, c config) error {
	all, err := open(srv.addr, ours, oursFair, rueidisSubject,
		redislockEvery("redislock-10ms", 10*time.Millisecond), redsyncSubject)
	if err != nil {
		return err
	}
	defer closeAll(all)
	all = c.chosen(all)
	got, err := inTurns(ctx, srv, all, c.rounds, load{
		n: c.crowd, drain: drainContended, key: func(int) string { return "bench" },
	})
	if err != nil {
		return err
	}
	var rows []string
	for i, rounds := range got {
		r := medians(rounds)
		rows = append(rows, fmt.Sprintf("%s\t%s\t%.2f\t%s\t%s\t%.1f\t%s\t%s\t%.1f\t%d\t%d", all[i].name, short(r.took),
			part(got[0], rounds, func(r round) time.Duration { return r.took }), short(r.p99), short(r.max), r.perGrant,
			short(r.client), short(r.server), float64(r.heap)/(1<<20), r.goroutines, r.starved))
	}
	table(fmt.Sprintf("%d goroutines on one key, each acquires and releases it once", c.crowd),
		"lock\tall granted in\tlockchaos/this\twait p99\twait max\tcommands/grant\tclient\tserver\theap MB\tgoroutines\tstarved (max)", rows)
	return nil
}

// renewEvery is how often a watched hold is renewed: a third of its lease.
const renewEvery = 2 * time.Second

// watched measures many concurrent holds that are renewed.
func watched(ctx context.Context, srv *server, c config) error {
	var rows []string
	for _, w := range []struct {
		name string
		hold func(ctx context.Context, addr string) (acquire func(key string) (context.Context, error), end func(), err error)
	}{{"lockchaos", watchOurs}, {"rueidislock", watchRueidis}} {
		if err := srv.reset(ctx); err != nil {
			return err
		}
		row, err := watchOne(ctx, srv, c, w.name, w.hold)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		rows = append(rows, row)
	}
	table(fmt.Sprintf("%d holds, renewed every %v by the library, for %v",
		c.watched, renewEvery, 5*renewEvery),
		"lock\tcommands/s\tgoroutines\theap MB\tlost", rows)
	return nil
}

func watchOne(ctx context.Context, srv *server, c config, name string,
	hold func(context.Context, string) (func(string) (context.Context, error), func(), error)) (string, error) {
	watch := watchResources()
	acquire, end, err := hold(ctx, srv.addr)
	if err != nil {
		return "", err
	}
	defer end()
	holds := make([]context.Context, c.watched)
	errs := make([]error, 64)
	var wg sync.WaitGroup
	for g := range errs {
		wg.Go(func() {
			for i := g; i < c.watched && errs[g] == nil; i += len(errs) {
				holds[i], errs[g] = acquire(fmt.Sprintf("bench-%d", i))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return "", err
		}
	}
	before, err := srv.calls(ctx, false)
	if err != nil {
		return "", err
	}
	time.Sleep(5 * renewEvery)
	after, err := srv.calls(ctx, false)
	goroutines, heap := watch()
	lost := 0
	for _, h := range holds {
		if h.Err() != nil {
			lost++
		}
	}
	return fmt.Sprintf("%s\t%.0f\t%d\t%.1f\t%d", name, float64(after-before)/(5*renewEvery).Seconds(),
		goroutines, float64(heap)/(1<<20), lost), err
}

func watchOurs(ctx context.Context, addr string) (func(string) (context.Context, error), func(), error) {
	rdb := dial(addr)
	c, err := lock.New(rdb, lock.Options{Lease: 3 * renewEvery})
	if err != nil {
		return nil, nil, err
	}
	return func(key string) (context.Context, error) {
			h, err := c.Mutex(key).Acquire(ctx)
			if err != nil {
				return nil, err
			}
			return h.Context(), nil
		}, func() {
			_ = c.Close(context.Background())
			_ = rdb.Close()
		}, nil
}

func watchRueidis(ctx context.Context, addr string) (func(string) (context.Context, error), func(), error) {
	l, err := rueidisLocker(addr, renewEvery)
	if err != nil {
		return nil, nil, err
	}
	return func(key string) (context.Context, error) {
		h, _, err := l.WithContext(ctx, key)
		return h, err
	}, l.Close, nil
}
