package lock

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/wait"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// callsOf is how often a server has run a command, also in scripts.
func callsOf(t *testing.T, rdb *redis.Client, command string) int {
	t.Helper()
	stats := rdb.InfoMap(context.Background(), "commandstats").Item("Commandstats", "cmdstat_"+command)
	calls, _, _ := strings.Cut(strings.TrimPrefix(stats, "calls="), ",")
	n, _ := strconv.Atoi(calls) // not a number: never
	return n
}

// fill makes goroutines of a client wait for a held lock, and returns the grants of each.
func fill(t *testing.T, c *Client, name string, n int) []<-chan *Hold {
	t.Helper()
	var all []<-chan *Hold
	for i := range n {
		all = append(all, acquireLater(context.Background(), t, c.Mutex(name)))
		asleep(t, c, "{"+name+"}:free", i+1)
	}
	return all
}

// A lock goes from waiter to waiter of one client: each grant is one request in the pipeline of the release before, and
// nothing is published. Whether a holder is quick enough depends on the machine: each gets its whole time, and not
// all have to be.
func TestReleaseHandsOver(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	rdb := s.Dial(t)
	c := newTestClient(t, s.Dial(t), Options{PollMax: time.Hour})
	h := acquire(t, c.Mutex("short"))
	const n = 50
	// Waiters are served in order, unless the subscription is renewed meanwhile: that wakes all of them.
	granted := make(chan *Hold)
	for _, served := range fill(t, c, "short", n) {
		go func() { granted <- <-served }()
	}
	published := callsOf(t, rdb, "publish")
	for range n {
		h.since = time.Now() // however long the ones before took
		release(t, h)
		h = within(t, testTimeout, "the next waiter", granted)
	}
	release(t, h)
	// The mark of the first waiter is published, as are the releases after handOverFor.
	if got := callsOf(t, rdb, "publish") - published; got > n/2 {
		t.Errorf("%d messages for %d grants, so nothing was handed over", got, n)
	}
}

// A client whose goroutines hand a lock over to each other leaves it to others after handOverFor: the time counts from
// the first grant, however often it was handed over since.
func TestHandingOverStarvesNobody(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	rdb := s.Dial(t)
	c := newTestClient(t, s.Dial(t), Options{PollMax: time.Hour})
	release(t, acquire(t, c.Mutex("shared"))) // a server that does not know the script answers the acquire first
	h := acquire(t, c.Mutex("shared"))
	served := fill(t, c, "shared", 3)
	h.since = time.Now()
	release(t, h)
	second := within(t, testTimeout, "the second", served[0])
	if !second.since.Equal(h.since) {
		t.Errorf("the time counts from %v, want from %v", second.since, h.since)
	}
	second.since = second.since.Add(-handOverFor)
	published := callsOf(t, rdb, "publish")
	release(t, second)
	if callsOf(t, rdb, "publish") == published {
		t.Error("nothing was published, so no other client would have been woken")
	}
	third := within(t, testTimeout, "the third", served[1])
	if third.since.Equal(h.since) {
		t.Error("it was handed over")
	}
	release(t, third)
	release(t, within(t, testTimeout, "the fourth", served[2]))
}

// A waiter whose context ends just when the lock is handed over to it looks at the reply, or else nobody would.
func TestHandOverMeetsTheEnd(t *testing.T) {
	t.Parallel()
	c := newTestClient(t, redis.NewClient(&redis.Options{Addr: freeAddr(t)}), Options{})
	handedOver := 0
	for range 2000 {
		w := &waitLoop{client: c, channel: "meets", mode: chained}
		w.waiter, _ = c.queues.Join(w.channel, true)
		ctx, cancel := context.WithCancel(context.Background())
		awake := make(chan bool)
		go func() { awake <- w.sleep(ctx, time.Hour, prepared{}) }()
		for !sleeps(c, w.channel) {
			runtime.Gosched()
		}
		go cancel()
		done := c.queues.HandOver(w.channel, func(wire.Call) *wait.Handed { return &wait.Handed{} })
		if got := <-awake; done && !got {
			t.Fatal("the waiter left, and the request that was sent for it is nobody's")
		}
		if done {
			handedOver++
		}
		c.queues.TakeHanded(w.waiter)
		c.queues.Leave(w.waiter, true, time.Time{})
	}
	if handedOver == 0 {
		t.Error("every waiter had left before")
	}
}

// prepared is a requester whose requests are all sent for it.
type prepared struct{}

func (prepared) request(context.Context) (turn, error) { return turn{}, nil }

func (prepared) next() (wire.Call, bool) { return wire.Call{}, true }

func sleeps(c *Client, channel string) bool {
	n, _, _ := c.queues.AsleepIn(channel)
	return n == 1
}

// The waiter that the lock is handed over to gives up while its request is on its way: the lock does not stay with it.
func TestHandedOverToOneThatLeaves(t *testing.T) {
	t.Parallel()
	_, p, c := behindProxy(t, Options{PollMax: time.Hour})
	h := acquire(t, c.Mutex("left"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	left := make(chan error, 1)
	go func() {
		_, err := c.Mutex("left").Acquire(ctx)
		left <- err
	}()
	asleep(t, c, "{left}:free", 1)
	next := acquireLater(context.Background(), t, c.Mutex("left"))
	asleep(t, c, "{left}:free", 2)
	p.hang()
	h.since = time.Now()
	released := make(chan error, 1)
	go func() { released <- h.Release(context.Background()) }()
	eventually(t, testTimeout, "the requests were sent", func() bool { return len(p.Dropped) > 0 })
	cancel()
	if err := within(t, testTimeout, "the first gives up", left); !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	p.lose(0)
	release(t, within(t, testTimeout, "the second", next))
	_ = within(t, testTimeout, "the release", released) // its reply was held; it may be unknown
}

// The replies to a release and to the acquire behind it are lost: both are sent again, and each counts once.
func TestHandedOverReplyLost(t *testing.T) {
	t.Parallel()
	direct, p, c := behindProxy(t, Options{})
	m := c.Mutex("lost-reply")
	first := acquire(t, m)
	next := acquireLater(context.Background(), t, m, WithLease(time.Minute))
	asleep(t, c, "{lost-reply}:free", 1)
	p.lose(1)
	first.since = time.Now()
	release(t, first)
	second := within(t, testTimeout, "the next", next)
	if count := hashOf(t, direct, "lost-reply")["count"]; count != "1" {
		t.Errorf("the lock has %s holds, want 1", count)
	}
	release(t, second)
	mustExist(t, direct, "lost-reply", false)
}
