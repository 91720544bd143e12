package historic

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/locktest"
)

var errDied = errors.New("the process has died")

// SETNX: its holder is gone, and the lock is not.
func TestSetnxOutlivesItsHolder(t *testing.T) {
	ctx := context.Background()
	rdb := locktest.StartServer(t).Dial(t)
	a := open(t, "setnx", on(rdb))
	must(t, "acquire", a.TryAcquire(ctx, "l", "a", lease), nil)
	// No release. Ten leases of a later lock would not help: there is no end.
	if ttl := rdb.TTL(ctx, "l").Val(); ttl != -1 {
		t.Errorf("the key ends in %v", ttl)
	}
	must(t, "acquire of another", open(t, "setnx", on(rdb)).TryAcquire(ctx, "l", "b", lease), ErrHeld)
}

// SETNX, then EXPIRE: the client dies in between.
func TestSetnxExpireDiesInBetween(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	direct, rdb := s.Dial(t), s.Dial(t)
	death := newStop("pexpire")
	death.goOn <- errDied
	rdb.AddHook(death)
	must(t, "acquire", open(t, "setnx-expire", on(rdb)).TryAcquire(ctx, "l", "a", lease), errDied)
	if ttl := direct.TTL(ctx, "l").Val(); ttl != -1 {
		t.Errorf("the key of the dead client ends in %v, want never", ttl)
	}
	must(t, "acquire of another", open(t, "setnx-expire", on(direct)).TryAcquire(ctx, "l", "b", lease), ErrHeld)
}

// SETNX with a timestamp, and DEL: both see the dead holder, both take the lock.
func TestSetnxDelBothTakeIt(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	direct, slow := s.Dial(t), s.Dial(t)
	past := Config{Masters: []redis.UniversalClient{direct}, Now: func() time.Time { return time.Now().Add(-time.Hour) }}
	must(t, "acquire of the one who dies", open(t, "setnx-del", past).TryAcquire(ctx, "l", "dead", lease), nil)

	gate := newStop("del")
	slow.AddHook(gate)
	a, b := open(t, "setnx-del", on(slow)), open(t, "setnx-del", on(direct))
	first := make(chan error, 1)
	go func() { first <- a.TryAcquire(ctx, "l", "a", time.Hour) }()
	<-gate.reached // it has read that the lease is over
	must(t, "acquire of b", b.TryAcquire(ctx, "l", "b", time.Hour), nil)
	gate.goOn <- nil
	must(t, "acquire of a, which deletes the lock of b", <-first, nil)
}

// The same with GETSET: only one takes it. So the article's cure is one.
func TestSetnxGetsetOneTakesIt(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	direct, slow := s.Dial(t), s.Dial(t)
	past := Config{Masters: []redis.UniversalClient{direct}, Now: func() time.Time { return time.Now().Add(-time.Hour) }}
	must(t, "acquire of the one who dies", open(t, "setnx-getset", past).TryAcquire(ctx, "l", "dead", lease), nil)

	gate := newStop("getset")
	slow.AddHook(gate)
	a, b := open(t, "setnx-getset", on(slow)), open(t, "setnx-getset", on(direct))
	first := make(chan error, 1)
	go func() { first <- a.TryAcquire(ctx, "l", "a", 2*time.Hour) }()
	<-gate.reached
	must(t, "acquire of b", b.TryAcquire(ctx, "l", "b", time.Hour), nil)
	promised := direct.Get(ctx, "l").Val()
	gate.goOn <- nil
	must(t, "acquire of a", <-first, ErrHeld)
	if now := direct.Get(ctx, "l").Val(); now == promised {
		t.Error("the loser has not moved the end of the winner's lease; the article says that it does")
	}
}

// The clock of a client decides, and it is ahead: it takes a lock that is held.
func TestClockAheadTakesWhatIsHeld(t *testing.T) {
	ctx := context.Background()
	rdb := locktest.StartServer(t).Dial(t)
	for _, name := range []string{"setnx-del", "setnx-getset", "watch-multi"} {
		t.Run(name, func(t *testing.T) {
			ahead := Config{Masters: []redis.UniversalClient{rdb},
				Now: func() time.Time { return time.Now().Add(2 * time.Minute) }}
			a, b, honest := open(t, name, on(rdb)), open(t, name, ahead), open(t, name, on(rdb))
			must(t, "acquire", a.TryAcquire(ctx, name, "a", time.Minute), nil)
			must(t, "acquire of another whose clock is right", honest.TryAcquire(ctx, name, "c", time.Minute), ErrHeld)
			must(t, "acquire of another whose clock is ahead", b.TryAcquire(ctx, name, "b", time.Minute), nil)
		})
	}
}

// DEL after the lease: the lock of the next one is deleted, and a third gets in.
func TestPlainDelTakesTheNextOnesLock(t *testing.T) {
	ctx := context.Background()
	rdb := locktest.StartServer(t).Dial(t)
	for _, name := range []string{"set-nx-ex", "setnx-expire"} {
		t.Run(name, func(t *testing.T) {
			l := open(t, name, on(rdb))
			must(t, "acquire of a", l.TryAcquire(ctx, name, "a", lease), nil)
			over(t, rdb, name)
			must(t, "acquire of b", l.TryAcquire(ctx, name, "b", time.Minute), nil)
			must(t, "release of a", l.Release(ctx, name, "a"), nil)
			must(t, "acquire of c, while b has the lock", l.TryAcquire(ctx, name, "c", time.Minute), nil)
		})
	}
}

// With compare-and-delete that is over; but the holder that outlived its lease
// was told nothing until then, and two were at work.
func TestCompareAndDeleteTellsTooLate(t *testing.T) {
	ctx := context.Background()
	rdb := locktest.StartServer(t).Dial(t)
	l := open(t, "set-nx-px", on(rdb))
	must(t, "acquire of a", l.TryAcquire(ctx, "l", "a", lease), nil)
	over(t, rdb, "l")
	must(t, "acquire of b, while a believes that it holds", l.TryAcquire(ctx, "l", "b", time.Minute), nil)
	must(t, "release of a", l.Release(ctx, "l", "a"), ErrNotOwner)
	must(t, "acquire of c", l.TryAcquire(ctx, "l", "c", time.Minute), ErrHeld)
}

// The answer to SET NX PX is lost and go-redis sends it again: the lock is held
// by the one who was refused (go-redis#2985).
func TestSetNXPXRefusedByItself(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	p := locktest.StartProxy(t, s.Addr)
	l := open(t, "set-nx-px", on(locktest.Dial(t, p.Addr)))
	p.Lose(1, "$3\r\nset\r\n")
	must(t, "acquire", l.TryAcquire(ctx, "l", "a", time.Minute), ErrHeld)
	if len(p.Lost) != 1 {
		t.Fatalf("%d answers were lost, want 1", len(p.Lost))
	}
	if holder := s.Dial(t).Get(ctx, "l").Val(); holder != "a" {
		t.Errorf("the lock is held by %q, want a, who was told that somebody else has it", holder)
	}
}

// The answer to Redisson's script is lost and it is sent again: counted twice,
// so one release does not free it (redisson#7367).
func TestRedissonCountsTwice(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	p := locktest.StartProxy(t, s.Addr)
	direct := s.Dial(t)
	a, b := open(t, "redisson", on(locktest.Dial(t, p.Addr))), open(t, "redisson", on(direct))
	p.Lose(1, "eval")
	must(t, "acquire", a.TryAcquire(ctx, "l", "a", time.Minute), nil)
	if n := direct.HGet(ctx, "l", "a").Val(); n != "2" || len(p.Lost) != 1 {
		t.Fatalf("held %s times after %d lost answers, want 2 after 1", n, len(p.Lost))
	}
	must(t, "release", a.Release(ctx, "l", "a"), nil)
	must(t, "acquire of another after the release", b.TryAcquire(ctx, "l", "b", time.Minute), ErrHeld)
}

// The answer to Redisson's release is lost: the owner is told that it is none (redisson#4871).
func TestRedissonReleaseIsRefused(t *testing.T) {
	ctx := context.Background()
	s := locktest.StartServer(t)
	p := locktest.StartProxy(t, s.Addr)
	a := open(t, "redisson", on(locktest.Dial(t, p.Addr)))
	must(t, "acquire", a.TryAcquire(ctx, "l", "a", time.Minute), nil)
	p.Lose(1, "eval")
	must(t, "release", a.Release(ctx, "l", "a"), ErrNotOwner)
	if s.Dial(t).Exists(ctx, "l").Val() != 0 {
		t.Error("the lock is still there: the test tested nothing")
	}
}

// Masters that are slower together than the lease: granted when the first of
// them has long forgotten it, and another owner is granted too (redisson#624).
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
	begun := time.Now()
	must(t, "acquire over slow connections", a.TryAcquire(ctx, "l", "a", lease), nil)
	if took := time.Since(begun); took < 3*lease {
		t.Fatalf("took %v: the test tested nothing", took)
	}
	must(t, "acquire of another, at the moment of the grant", b.TryAcquire(ctx, "l", "b", time.Minute), nil)
}

// Redisson's watchdog renews a hold that names no lease, and tells nobody when it is lost.
func TestRedissonWatchdogEndsWithTheHold(t *testing.T) {
	ctx := context.Background()
	rdb := locktest.StartServer(t).Dial(t)
	l := open(t, "redisson", on(rdb)).(*redisson)
	must(t, "acquire", l.TryAcquire(ctx, "l", "a", 0), nil)
	rdb.Del(ctx, "l")
	must(t, "release of what somebody has deleted", l.Release(ctx, "l", "a"), ErrNotOwner)
	l.wg.Wait() // its renewal has ended
}
