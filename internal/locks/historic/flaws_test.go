package historic

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

var errCrash = errors.New("process crashed")

// SETNX: the lock outlives its crashed holder.
func TestSetnxOutlivesItsHolder(t *testing.T) {
	ctx := context.Background()
	rdb := locktest.StartServer(t).Dial(t)
	a := open(t, "setnx", on(rdb))
	must(t, "acquire", a.TryAcquire(ctx, "l", "a", lease), nil)
	// No release, and no expiry.
	if ttl := rdb.TTL(ctx, "l").Val(); ttl != -1 {
		t.Errorf("the key has a TTL of %v", ttl)
	}
	must(t, "acquire of another", open(t, "setnx", on(rdb)).TryAcquire(ctx, "l", "b", lease), ErrHeld)
}

// SETNX, then EXPIRE: the client crashes between the two.
func TestSetnxExpireCrashInBetween(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	direct, rdb := s.Dial(t), s.Dial(t)
	crash := newStop("pexpire")
	crash.proceed <- errCrash
	rdb.AddHook(crash)
	must(t, "acquire", open(t, "setnx-expire", on(rdb)).TryAcquire(ctx, "l", "a", lease), errCrash)
	if ttl := direct.TTL(ctx, "l").Val(); ttl != -1 {
		t.Errorf("the key of the crashed client has a TTL of %v, want none", ttl)
	}
	must(t, "acquire of another", open(t, "setnx-expire", on(direct)).TryAcquire(ctx, "l", "b", lease), ErrHeld)
}

// SETNX with a timestamp, and DEL: two clients see an expired lease, both acquire the lock. Without a check of the
// second SETNX, or of the reply to GETSET, even a client that replaces nothing acquires it.
func TestExpiredLeaseGrantsTwice(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	for _, tt := range []struct {
		lock, command string // the command before which the slower client is stopped
	}{
		{"setnx-del", "del"}, {"setnx-del-unchecked", "del"}, {"setnx-del-unchecked", "set"},
		{"setnx-getset-unchecked", "getset"},
	} {
		name := tt.lock + " before " + tt.command
		t.Run(name, func(t *testing.T) {
			direct, slow := s.Dial(t), s.Dial(t)
			past := Config{Masters: []redis.UniversalClient{direct},
				Now: func() time.Time { return time.Now().Add(-time.Hour) }}
			must(t, "acquire with an expired lease", open(t, tt.lock, past).TryAcquire(ctx, name, "dead", lease), nil)

			gate := newStop(tt.command)
			if tt.command == "set" {
				gate.after = 1 // go-redis sends SETNX as SET NX; the first one asks whether the lock is free
			}
			slow.AddHook(gate)
			a, b := open(t, tt.lock, on(slow)), open(t, tt.lock, on(direct))
			first := make(chan error, 1)
			go func() { first <- a.TryAcquire(ctx, name, "a", time.Hour) }()
			gate.await(t, first) // it has read the expired lease
			must(t, "acquire of b", b.TryAcquire(ctx, name, "b", time.Hour), nil)
			gate.proceed <- nil
			must(t, "acquire of a, while b holds the lock", <-first, nil)
		})
	}
}

// A release that reads the key and then deletes it: in between the lease expires, and another client acquires the
// lock. With WATCH the release fails.
func TestReleaseWithoutWatchDeletesAnothersLock(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	for name, want := range map[string]string{"watch-multi-unwatched": "", "watch-multi": "b"} {
		t.Run(name, func(t *testing.T) {
			direct, slow := s.Dial(t), s.Dial(t)
			a := open(t, name, on(slow))
			ahead := Config{Masters: []redis.UniversalClient{direct},
				Now: func() time.Time { return time.Now().Add(time.Hour) }}
			must(t, "acquire of a", a.TryAcquire(ctx, name, "a", time.Minute), nil)
			gate := newStop("del")
			slow.AddHook(gate)
			released := make(chan error, 1)
			go func() { released <- a.Release(ctx, name, "a") }()
			gate.await(t, released)
			must(t, "acquire of b, for which the lease of a is over",
				open(t, name, ahead).TryAcquire(ctx, name, "b", time.Minute), nil)
			gate.proceed <- nil
			if err := <-released; (err == nil) != (want == "") {
				t.Errorf("release of a: %v", err)
			}
			if holder, _, _ := strings.Cut(direct.Get(ctx, name).Val(), " "); holder != want {
				t.Errorf("the key says that %q holds the lock, want %q", holder, want)
			}
		})
	}
}

// The lock is gone when its holder releases it: the first unlock script of Redisson reports success, the later one
// that it is not held.
func TestRedissonReleaseOfLostLock(t *testing.T) {
	ctx := context.Background()
	rdb := locktest.StartServer(t).Dial(t)
	for name, want := range map[string]error{"redisson-old-unlock": nil, "redisson": ErrNotOwner} {
		l := open(t, name, on(rdb))
		must(t, "acquire", l.TryAcquire(ctx, name, "a", time.Minute), nil)
		rdb.Del(ctx, name)
		must(t, name+": release of a lock that is gone", l.Release(ctx, name, "a"), want)
	}
}

// The same with GETSET: only one acquires it, as the article says.
func TestSetnxGetsetGrantsOnce(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	direct, slow := s.Dial(t), s.Dial(t)
	past := Config{Masters: []redis.UniversalClient{direct}, Now: func() time.Time { return time.Now().Add(-time.Hour) }}
	must(t, "acquire with an expired lease", open(t, "setnx-getset", past).TryAcquire(ctx, "l", "dead", lease), nil)

	gate := newStop("getset")
	slow.AddHook(gate)
	a, b := open(t, "setnx-getset", on(slow)), open(t, "setnx-getset", on(direct))
	first := make(chan error, 1)
	go func() { first <- a.TryAcquire(ctx, "l", "a", 2*time.Hour) }()
	gate.await(t, first)
	must(t, "acquire of b", b.TryAcquire(ctx, "l", "b", time.Hour), nil)
	before := direct.Get(ctx, "l").Val()
	gate.proceed <- nil
	must(t, "acquire of a", <-first, ErrHeld)
	if now := direct.Get(ctx, "l").Val(); now == before {
		t.Error("the loser has not changed the winner's lease; the article says that it does")
	}
}

// A client whose clock is ahead acquires a lock that is held.
func TestClockAheadAcquiresHeldLock(t *testing.T) {
	ctx := context.Background()
	rdb := locktest.StartServer(t).Dial(t)
	for _, name := range []string{
		"setnx-del", "setnx-del-unchecked", "setnx-getset", "setnx-getset-unchecked", "watch-multi",
		"watch-multi-unwatched",
	} {
		t.Run(name, func(t *testing.T) {
			ahead := Config{Masters: []redis.UniversalClient{rdb},
				Now: func() time.Time { return time.Now().Add(2 * time.Minute) }}
			a, b, c := open(t, name, on(rdb)), open(t, name, ahead), open(t, name, on(rdb))
			must(t, "acquire", a.TryAcquire(ctx, name, "a", time.Minute), nil)
			must(t, "acquire of a client whose clock is right", c.TryAcquire(ctx, name, "c", time.Minute), ErrHeld)
			must(t, "acquire of a client whose clock is ahead", b.TryAcquire(ctx, name, "b", time.Minute), nil)
		})
	}
}

// DEL after the lease deletes the lock of the next holder, and a third one acquires it.
func TestPlainDelReleasesAnothersLock(t *testing.T) {
	ctx := context.Background()
	rdb := locktest.StartServer(t).Dial(t)
	for _, name := range []string{"set-nx-ex", "setnx-expire"} {
		t.Run(name, func(t *testing.T) {
			l := open(t, name, on(rdb))
			must(t, "acquire of a", l.TryAcquire(ctx, name, "a", lease), nil)
			awaitExpiry(t, rdb, name)
			must(t, "acquire of b", l.TryAcquire(ctx, name, "b", time.Minute), nil)
			must(t, "release of a", l.Release(ctx, name, "a"), nil)
			must(t, "acquire of c, while b holds the lock", l.TryAcquire(ctx, name, "c", time.Minute), nil)
		})
	}
}

// Compare-and-delete prevents that, but the holder that outlived its lease learns it
// only at its release: until then there are two.
func TestCompareAndDeleteFailsTooLate(t *testing.T) {
	ctx := context.Background()
	rdb := locktest.StartServer(t).Dial(t)
	l := open(t, "set-nx-px", on(rdb))
	must(t, "acquire of a", l.TryAcquire(ctx, "l", "a", lease), nil)
	awaitExpiry(t, rdb, "l")
	must(t, "acquire of b, while a still works", l.TryAcquire(ctx, "l", "b", time.Minute), nil)
	must(t, "release of a", l.Release(ctx, "l", "a"), ErrNotOwner)
	must(t, "acquire of c", l.TryAcquire(ctx, "l", "c", time.Minute), ErrHeld)
}

// The reply to SET NX PX is lost and go-redis sends it again: the client whose acquire
// failed holds the lock (go-redis#2985).
func TestSetNXPXExcludesItself(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	p := locktest.StartProxy(t, s.Addr)
	l := open(t, "set-nx-px", on(locktest.Dial(t, p.Addr)))
	p.DropReplies(1, "$3\r\nset\r\n")
	must(t, "acquire", l.TryAcquire(ctx, "l", "a", time.Minute), ErrHeld)
	if len(p.Dropped) != 1 {
		t.Fatalf("%d replies were lost, want 1", len(p.Dropped))
	}
	if holder := s.Dial(t).Get(ctx, "l").Val(); holder != "a" {
		t.Errorf("the lock is held by %q, want a, whose acquire failed", holder)
	}
}

// The reply to Redisson's script is lost and it is sent again: the hold is counted twice,
// so one release does not free it (redisson#7367).
func TestRedissonCountsTwice(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	p := locktest.StartProxy(t, s.Addr)
	direct := s.Dial(t)
	a, b := open(t, "redisson", on(locktest.Dial(t, p.Addr))), open(t, "redisson", on(direct))
	p.DropReplies(1, "eval")
	must(t, "acquire", a.TryAcquire(ctx, "l", "a", time.Minute), nil)
	if n := direct.HGet(ctx, "l", "a").Val(); n != "2" || len(p.Dropped) != 1 {
		t.Fatalf("hold count %s after %d lost replies, want 2 after 1", n, len(p.Dropped))
	}
	must(t, "release", a.Release(ctx, "l", "a"), nil)
	must(t, "acquire of another after the release", b.TryAcquire(ctx, "l", "b", time.Minute), ErrHeld)
}

// The reply to Redisson's release is lost: it fails as not the owner's (redisson#4871).
func TestRedissonReleaseFails(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	p := locktest.StartProxy(t, s.Addr)
	a := open(t, "redisson", on(locktest.Dial(t, p.Addr)))
	must(t, "acquire", a.TryAcquire(ctx, "l", "a", time.Minute), nil)
	p.DropReplies(1, "eval")
	must(t, "release", a.Release(ctx, "l", "a"), ErrNotOwner)
	if s.Dial(t).Exists(ctx, "l").Val() != 0 {
		t.Error("the lock was not released: the test tested nothing")
	}
}

// Masters that together take longer than the lease: the lock is granted after it has expired at the first
// of them, and another owner acquires it too (redisson#624).
func TestRedissonRedlockGrantsAfterItsLease(t *testing.T) {
	ctx := context.Background()
	var slow, fast []redis.UniversalClient
	for range 3 {
		s := locktest.StartServer(t)
		p := locktest.StartProxy(t, s.Addr)
		slow, fast = append(slow, locktest.Dial(t, p.Addr)), append(fast, s.Dial(t))
		p.Delay(lease)
	}
	a, b := open(t, "redisson-redlock", on(slow...)), open(t, "redisson-redlock", on(fast...))
	start := time.Now()
	must(t, "acquire over slow connections", a.TryAcquire(ctx, "l", "a", lease), nil)
	if took := time.Since(start); took < 3*lease {
		t.Fatalf("took %v: the test tested nothing", took)
	}
	must(t, "acquire of another, at the moment of the grant", b.TryAcquire(ctx, "l", "b", time.Minute), nil)
}

// Redisson's watchdog ends with the hold.
func TestRedissonWatchdogEndsWithTheHold(t *testing.T) {
	ctx := context.Background()
	rdb := locktest.StartServer(t).Dial(t)
	l := open(t, "redisson", on(rdb)).(*redisson)
	must(t, "acquire", l.TryAcquire(ctx, "l", "a", 0), nil)
	rdb.Del(ctx, "l")
	must(t, "release after the key was deleted", l.Release(ctx, "l", "a"), ErrNotOwner)
	l.wg.Wait() // for the watchdog
}

// Two clients that each begin with another master, and stop at their second one: each has one vote, gives it back, and
// asks again after the same time. The first that asks alone is granted the lock.
func TestRedlockFixedRetrySplitsTheVotes(t *testing.T) {
	ctx := context.Background()
	var rdb []redis.UniversalClient
	for range 3 {
		rdb = append(rdb, locktest.StartServer(t).Dial(t))
	}
	votes := func(n int, owner string) {
		t.Helper()
		for _, one := range rdb {
			if one.Get(ctx, "l").Val() == owner {
				n--
			}
		}
		if n != 0 {
			t.Errorf("owner %s has %d votes fewer than it should have", owner, n)
		}
	}
	first := func(n int) Lock { return open(t, "redlock-fixed-retry", Config{Masters: rdb, First: n}) }
	must(t, "vote of n2 for b", rdb[1].Set(ctx, "l", "b", 0).Err(), nil)
	must(t, "vote of n3 for c", rdb[2].Set(ctx, "l", "c", 0).Err(), nil)
	must(t, "acquire of a, one vote each", first(0).TryAcquire(ctx, "l", "a", time.Minute), ErrHeld)
	votes(0, "a")
	votes(1, "b")
	votes(1, "c")
	must(t, "the vote of b is given back", rdb[1].Del(ctx, "l").Err(), nil)
	a := first(0)
	must(t, "acquire of a, which asks alone", a.TryAcquire(ctx, "l", "a", time.Minute), nil)
	votes(2, "a")
	must(t, "release of an owner with one vote", first(1).Release(ctx, "l", "c"), ErrNotOwner)
	must(t, "release", a.Release(ctx, "l", "a"), nil)
	votes(0, "a")
	must(t, "release of a lock that is not held", a.Release(ctx, "l", "a"), ErrNotOwner)
}
