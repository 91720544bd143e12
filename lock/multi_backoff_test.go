package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// beyondGrace is how late replies are where they are later than both the wait for another owner and the grace of an
// undo: here they have the values of production.
const beyondGrace = undoGrace + 50*time.Millisecond

// shortPatience is a PollMax with which waits for other owners are short.
const shortPatience = 20 * time.Millisecond

// slowSecond are a first lock, and the proxy and the client of the locks after it.
type slowSecond struct {
	direct *redis.Client
	proxy  *proxy
	other  *Client // of another program, and without a proxy
	first  *Mutex
	second *Client
}

// startSlowSecond makes a server with two proxies, of which the second has the greater address, so that its locks are
// taken last. Waits for other owners end after one to two times pollMax.
func startSlowSecond(t *testing.T, pollMax, timeout time.Duration) slowSecond {
	t.Helper()
	s := startRedis(t)
	low, high := startProxy(t, s.Addr), startProxy(t, s.Addr)
	if low.Addr > high.Addr {
		low, high = high, low
	}
	o := Options{PollMax: pollMax, Timeout: timeout}
	client := func(p *proxy) *Client {
		rdb := dialRedis(t, p.Addr)
		warmUp(t, rdb)
		c := newTestClient(t, rdb, o)
		c.grace = undoGrace
		return c
	}
	return slowSecond{s.Dial(t), high, newTestClient(t, s.Dial(t), Options{}), client(low).Mutex("first"), client(high)}
}

// ofEveryKind are locks that can be taken after the first, of each kind that a multi-lock has.
func ofEveryKind() map[string]func(c *Client) []AnyLock {
	return map[string]func(c *Client) []AnyLock{
		"mutex":        func(c *Client) []AnyLock { return []AnyLock{c.Mutex("second")} },
		"one script":   func(c *Client) []AnyLock { return []AnyLock{c.Mutex("second"), c.Mutex("third")} },
		"fenced":       func(c *Client) []AnyLock { return []AnyLock{c.FencedMutex("second")} },
		"fair":         func(c *Client) []AnyLock { return []AnyLock{c.FairMutex("second")} },
		"writer":       func(c *Client) []AnyLock { return []AnyLock{c.RW("second").PreferWriters().Write()} },
		"permits":      func(c *Client) []AnyLock { return []AnyLock{c.Semaphore("second", WithTotal(1)).Permits(1)} },
		"leased":       func(c *Client) []AnyLock { return []AnyLock{c.PermitSemaphore("second", WithTotal(1)).Permits(1)} },
		"fair permits": func(c *Client) []AnyLock { return []AnyLock{c.FairSemaphore("second", WithTotal(1)).Permits(1)} },
	}
}

// eachSlowSecond calls run with all locks of one kind after the other, the first one included, and with another
// program's without it.
func eachSlowSecond(t *testing.T, run func(t *testing.T, x slowSecond, all, theirs *MultiLock)) {
	t.Helper()
	for name, build := range ofEveryKind() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := startSlowSecond(t, shortPatience, 2*testTimeout)
			run(t, x, multi(t, append(build(x.second), x.first)...), multi(t, build(x.other)...))
		})
	}
}

// While the first lock is held, another owner is waited for only briefly, but a reply is not: a late one does not fail
// the acquire.
func TestMultiWaitsForLateReplies(t *testing.T) {
	t.Parallel()
	eachSlowSecond(t, func(t *testing.T, x slowSecond, all, _ *MultiLock) {
		x.proxy.Delay(beyondGrace)
		releaseAll(t, acquireAll(t, all))
		mustExist(t, x.direct, "first", false)
	})
}

// A lock that stays held ends the round, and the first lock is free in between, whatever its server's delay; possible
// leftovers of an attempt are taken back before the next.
func TestMultiWaitsBrieflyForOtherOwners(t *testing.T) {
	t.Parallel()
	eachSlowSecond(t, func(t *testing.T, x slowSecond, all, theirs *MultiLock) {
		h := acquireAll(t, theirs)
		x.proxy.lose(1)
		x.proxy.Delay(beyondGrace)
		done := make(chan *MultiHold, 1)
		go func() { done <- acquireAll(t, all) }()
		acquiredTwice(t, x.direct, "first")
		x.proxy.Delay(0)
		releaseAll(t, h)
		releaseAll(t, within(t, testTimeout, "the grant", done))
	})
}

// A wait that ends in the middle of a round still says that another owner has held a lock, if a round before it ended
// with that reply.
func TestMultiSaysThatALockWasHeld(t *testing.T) {
	t.Parallel()
	eachSlowSecond(t, func(t *testing.T, x slowSecond, all, theirs *MultiLock) {
		x.first.client.grace, x.second.grace = testTimeout, testTimeout
		h := acquireAll(t, theirs)
		x.proxy.Delay(100 * time.Millisecond)
		ctx, cancel := context.WithCancel(context.Background())
		failed := make(chan error, 1)
		go func() {
			_, err := all.Acquire(ctx)
			failed <- err
		}()
		acquiredTwice(t, x.direct, "first") // a request for the second lock is open
		cancel()
		err := within(t, testTimeout, "the error", failed)
		if !errors.Is(err, ErrHeld) || !errors.Is(err, context.Canceled) || !Definite(err) {
			t.Errorf("error %v, want a definite ErrHeld that names the end of the context", err)
		}
		mustExist(t, x.direct, "first", false)
		releaseAll(t, h)
	})
}

// A server that does not reply at all keeps the other locks from others for no longer than the client's timeout.
func TestMultiGivesUpOnAServerThatHangs(t *testing.T) {
	t.Parallel()
	x := startSlowSecond(t, shortPatience, waitTimeout) // within which the first lock is released
	x.proxy.hang()
	_, err := multi(t, x.first, x.second.Mutex("second")).Acquire(context.Background())
	if !errors.Is(err, ErrUnknown) {
		t.Errorf("error %v, want ErrUnknown", err)
	}
	mustExist(t, x.direct, "first", false)
	x.proxy.lose(0)
}

// A round that fails releases its locks at the same time: a server that does not confirm one of them keeps no lock of
// another server from others.
func TestMultiReleasesARoundTogether(t *testing.T) {
	t.Parallel()
	x := startSlowSecond(t, time.Second, 2*waitTimeout)
	third := x.other.FairMutex("third")
	h := acquire(t, third)
	all := multi(t, x.first, x.second.Mutex("second"), x.second.FairMutex("third"))
	failed := make(chan error, 1)
	go func() {
		_, err := all.Acquire(context.Background())
		failed <- err
	}()
	eventually(t, testTimeout, "the third lock is waited for", func() bool {
		queue, err := third.Queue(context.Background())
		return err == nil && len(queue) == 1
	})
	x.proxy.hang()
	eventually(t, testTimeout, "the first lock was released", func() bool {
		return x.direct.Exists(context.Background(), "first").Val() == 0
	})
	if len(failed) > 0 {
		t.Error("the first lock was not free before the acquire gave up on the second one")
	}
	if err := within(t, testTimeout, "the error", failed); !errors.Is(err, ErrUnknown) {
		t.Errorf("error %v, want ErrUnknown", err)
	}
	x.proxy.lose(0)
	release(t, h)
}
