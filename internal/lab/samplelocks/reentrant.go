package samplelocks

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

func reentrantLock() Lock {
	return Lock{
		Name: "reentrant",
		Can:  promise.Reentrant | promise.Try | promise.Renew | promise.Watchdog | promise.CountsHolds,
		Bugs: map[string]string{
			"inner-frees":   "the release of an inner hold removes the lock",
			"watchdog-any":  "the watchdog does not look whose lock it renews",
			"reentry-cuts":  "a re-entry with a shorter lease shortens the outer hold",
			"loss-ignored":  "the watchdog takes a refused renewal for done",
			"watchdog-late": "the watchdog renews after a whole lease instead of a third",

			"watchdog-stays": "the watchdog is not stopped by the release",
			"loss-by-reply":  "the watchdog learns of the end of its lease by a reply only",

			"failed-release-renewed": "a release without a reply leaves the watchdog, and nobody releases the lock",
			"failed-acquire-renewed": "an acquire without a reply starts the watchdog, and nobody releases the lock",
		},
		open: func(b base) client.Locker { return &reentrant{base: b, dogs: map[string]*watchdog{}} },
	}
}

// reentrant is a hash with the owner's number of holds. Holds without a lease get ownLease, and a watchdog.
type reentrant struct {
	base
	mu   sync.Mutex
	dogs map[string]*watchdog // by key and owner
}

// watchdog renews the hold of an owner at a key, until as many levels as the lock has granted were released: the count
// at the server may be higher, by an acquire without a reply.
type watchdog struct {
	cancel context.CancelFunc
	levels int
}

const (
	ownLease = time.Second

	enterHash = `if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
		local n = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
		if ARGV[3] == 'cut' or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
			redis.call('PEXPIRE', KEYS[1], ARGV[2])
		end
		return n`
	leaveHash = `if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return -1 end
		local n = redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
		if n == 0 or ARGV[2] == 'all' then redis.call('DEL', KEYS[1]) end
		return n`
	renewHash = `if ARGV[3] ~= 'any' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
		if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
		return redis.call('EXISTS', KEYS[1])`
)

// flag is text if the lock has that bug.
func (b *base) flag(bug, text string) string {
	if b.bug == bug {
		return text
	}
	return ""
}

func (l *reentrant) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	lease := a.Lease
	if lease == 0 {
		lease = ownLease
	}
	count := 0
	start, err := l.poll(ctx, a.Wait, func() (_ bool, err error) {
		count, err = run(ctx, l.rdb(), enterHash, []string{a.Key}, a.Owner, ms(lease), l.flag("reentry-cuts", "cut"))
		return count > 0, err
	})
	failed := err != nil && !errors.Is(err, errBusy) && l.bug == "failed-acquire-renewed"
	g, err := valid(start.Add(lease), err)
	if g.Count = count; err == nil || failed {
		l.watch(a, start.Add(lease))
	}
	return g, err
}

// watch counts one more level, and starts a watchdog for one without a lease.
func (l *reentrant) watch(a client.Acquire, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if dog := l.dogs[a.Key+a.Owner]; dog != nil {
		dog.levels++
	} else if a.Lease == 0 {
		ctx, cancel := context.WithCancel(context.Background())
		l.dogs[a.Key+a.Owner] = &watchdog{cancel, 1}
		go l.renewAlways(ctx, a.Key, a.Owner, until)
	}
}

// unwatch ends the watchdog, or one level of it.
func (l *reentrant) unwatch(key, owner string, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	dog := l.dogs[key+owner]
	if dog == nil {
		return
	}
	if dog.levels--; dog.levels == 0 || whole {
		dog.cancel()
		delete(l.dogs, key+owner)
	}
}

// renewAlways renews until the hold is released or lost, which is at until at the latest if no renewal succeeds.
func (l *reentrant) renewAlways(ctx context.Context, key, owner string, until time.Time) {
	every := ownLease / 3
	if l.bug == "watchdog-late" {
		every = ownLease
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		start := time.Now()
		n, err := l.renewOnce(ctx, key, owner, until)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && n == 1:
			until = start.Add(ownLease)
			l.notify(client.Reply{Event: "renewed", Key: key, Owner: owner, Deadline: until})
		case err == nil || !time.Now().Before(until):
			l.unwatch(key, owner, true)
			l.notify(client.Reply{Event: "lost", Key: key, Owner: owner})
			return
		}
		every = min(every, max(0, time.Until(until)))
	}
}

// renewOnce waits for a reply until the lease is over.
func (l *reentrant) renewOnce(ctx context.Context, key, owner string, until time.Time) (int, error) {
	if l.bug != "loss-by-reply" && l.bug != "watchdog-late" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	n, err := run(ctx, l.rdb(), renewHash, []string{key}, owner, ms(ownLease), l.flag("watchdog-any", "any"))
	if (l.bug == "loss-ignored" || l.bug == "watchdog-stays") && err == nil {
		n = 1
	}
	return n, err
}

func (l *reentrant) Renew(ctx context.Context, h client.Hold, lease time.Duration) (client.Grant, error) {
	if lease == 0 {
		lease = ownLease
	}
	start := time.Now()
	return valid(start.Add(lease), l.change(ctx, renewHash, []string{h.Key}, h.Owner, ms(lease), ""))
}

func (l *reentrant) Release(ctx context.Context, h client.Hold) (int, error) {
	n, err := run(ctx, l.rdb(), leaveHash, []string{h.Key}, h.Owner, l.flag("inner-frees", "all"))
	if l.bug != "watchdog-stays" && !(l.bug == "failed-release-renewed" && err != nil) {
		l.unwatch(h.Key, h.Owner, err == nil && n <= 0)
	}
	if err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, client.ErrNotHeld
	}
	return n, nil
}

func (l *reentrant) Close(ctx context.Context) error {
	l.mu.Lock()
	for _, dog := range l.dogs {
		dog.cancel()
	}
	l.mu.Unlock()
	return l.base.Close(ctx)
}
