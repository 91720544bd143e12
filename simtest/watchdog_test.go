package simtest_test

import (
	"context"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

const (
	compareAndExpire = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`
	watchdogLease    = time.Second
)

// watchdog is a lock whose own watchdog renews the lease and reports losses.
type watchdog struct {
	plain
	notify func(client.Reply)

	mu    sync.Mutex
	holds map[string]context.CancelFunc // by owner
	all   sync.WaitGroup
}

var watchdogKind = kind{
	name: "watchdog", can: promise.Watchdog | promise.ReportsLoss,
	open: func(s client.Setup, bug string, notify func(client.Reply)) client.Locker {
		return &watchdog{plain: plain{newSingle(s, bug)}, notify: notify, holds: map[string]context.CancelFunc{}}
	},
}

func (l *watchdog) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	a.Lease = watchdogLease
	g, err := l.plain.Acquire(ctx, a)
	if err != nil {
		return g, err
	}
	watching, stop := context.WithCancel(context.Background())
	l.mu.Lock()
	l.holds[a.Owner] = stop
	l.mu.Unlock()
	l.all.Go(func() { l.watch(watching, a, g.Deadline) })
	return g, nil
}

// watch renews until ctx ends or the lock is lost, also if a renewal has no reply when the lease ends.
func (l *watchdog) watch(ctx context.Context, a client.Acquire, deadline time.Time) {
	lost := func() {
		if l.bug != "reports no loss" {
			l.notify(client.Reply{Event: "lost", Key: a.Key, Owner: a.Owner})
		}
	}
	expired := time.AfterFunc(time.Until(deadline), lost)
	defer expired.Stop()
	trusts := l.bug == "renews what it does not own" || l.bug == "takes a lost lock back" // every reply
	if trusts {
		expired.Stop()
	}
	every := watchdogLease / 3
	if l.bug == "renews too late" {
		every = watchdogLease + 200*time.Millisecond
	}
	for {
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
		start := time.Now()
		n, err := l.renew(ctx, a)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && n > 0:
			deadline = start.Add(watchdogLease)
			if !trusts {
				if !expired.Stop() {
					return
				}
				expired.Reset(time.Until(deadline))
			}
			l.notify(client.Reply{Event: "renewed", Key: a.Key, Owner: a.Owner, Deadline: deadline})
		case err == nil:
			if expired.Stop() {
				lost()
			}
			return
		}
	}
}

func (l *watchdog) renew(ctx context.Context, a client.Acquire) (int, error) {
	switch l.bug {
	case "renews what it does not own":
		ok, err := l.rdb.PExpire(ctx, a.Key, watchdogLease).Result()
		return map[bool]int{true: 1}[ok], err
	case "takes a lost lock back":
		return 1, l.rdb.Set(ctx, a.Key, a.Owner, watchdogLease).Err()
	case "does not renew":
		return 1, nil
	}
	return l.eval(ctx, compareAndExpire, a.Key, a.Owner, watchdogLease.Milliseconds())
}

func (l *watchdog) Release(ctx context.Context, h client.Hold) (int, error) {
	l.mu.Lock()
	stop := l.holds[h.Owner]
	l.mu.Unlock()
	if stop != nil && l.bug != "renews after the release" {
		stop()
	}
	return l.plain.Release(ctx, h)
}

func (l *watchdog) Close(ctx context.Context) error {
	l.mu.Lock()
	for _, stop := range l.holds { // in any order
		stop()
	}
	l.mu.Unlock()
	l.all.Wait()
	return l.plain.Close(ctx)
}
