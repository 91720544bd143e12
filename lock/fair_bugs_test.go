package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// impatient clients send a heartbeat every 100 ms, so that dead waiters are skipped after
// 300 ms.
var impatient = Options{PollMax: 100 * time.Millisecond}

// deadline is when the waiter expires, by the server's clock.
func deadline(t *testing.T, rdb *redis.Client, name, owner string) time.Duration {
	t.Helper()
	for _, z := range rdb.ZRangeWithScores(context.Background(), tagged(name, "waiters"), 0, -1).Val() {
		if strings.HasSuffix(z.Member.(string), " "+owner) {
			return time.Duration(z.Score) * time.Millisecond
		}
	}
	return 0
}

func serverTime(t *testing.T, rdb *redis.Client) time.Duration {
	t.Helper()
	now, err := rdb.Time(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.UnixNano())
}

// A waiter that was older than its score was removed by others and never woken.
// Regression: redisson#3004
func TestFairWaiterOlderThanItsScoreIsServed(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	o := Options{PollMax: maxHeartbeat} // a waiter without a heartbeat for three times as long is dead
	c, other := newTestClient(t, rdb, o), newTestClient(t, rdb, o)
	h := acquire(t, c.FairMutex("old"))
	served := inTurn(t, rdb, c.FairMutex("old"), "old")
	first := deadline(t, rdb, "old", "old")
	served = append(served, inTurn(t, rdb, other.FairMutex("old"), "young")...)
	eventually(t, testTimeout, "the first deadline has passed", func() bool {
		return serverTime(t, rdb) > first+500*time.Millisecond
	})
	if diff := cmp.Diff([]string{"old", "young"}, waitersAtServer(t, rdb, "old")); diff != "" {
		t.Fatal(diff)
	}
	if left := deadline(t, rdb, "old", "old") - serverTime(t, rdb); left <= 0 {
		t.Errorf("the older waiter expired %v ago", -left)
	}
	release(t, h)
	old := within(t, testTimeout, "the older waiter", served[0])
	release(t, old)
	young := within(t, testTimeout, "the younger waiter", served[1])
	if young.token <= old.token {
		t.Errorf("tokens %d and %d, want the older waiter's first", old.token, young.token)
	}
	release(t, young)
}

// Short waits and long leases moved the scores hours ahead, so that dead waiters were not
// skipped for hours.
// Regression: redisson#1104
func TestFairDeadlinesStayNear(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{PollMax: maxHeartbeat})
	h := acquire(t, c.FairMutex("near"), WithLease(time.Hour))
	served := inTurn(t, rdb, c.FairMutex("near"), "head")
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		_, err := c.FairMutex("near").Acquire(ctx)
		cancel()
		if err == nil {
			t.Fatal("granted while held")
		}
	}
	last := inTurn(t, rdb, c.FairMutex("near"), "last")
	for _, owner := range []string{"head", "last"} {
		left := deadline(t, rdb, "near", owner) - serverTime(t, rdb)
		if left <= 0 || left > 3*maxHeartbeat {
			t.Errorf("%s counts as alive for %v, want three heartbeats at most", owner, left)
		}
	}
	release(t, h)
	release(t, within(t, testTimeout, "the head", served[0]))
	release(t, within(t, testTimeout, "the last", last[0]))
}

// Holders let their lease expire, so no message was published, and the lock stayed free
// while others waited (also redisson#3730).
// Regression: redisson#2883
func TestFairExpiredHoldersAreFollowed(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, impatient)
	acquire(t, c.FairMutex("let"), WithLease(150*time.Millisecond))
	var served []<-chan *Hold
	for i := range 3 {
		served = append(served, acquireLater(context.Background(), t, c.FairMutex("let"),
			WithOwner(fmt.Sprint(i)), WithReentry(), WithLease(150*time.Millisecond)))
	}
	for i, s := range served {
		h := within(t, testTimeout, fmt.Sprint("waiter ", i), s)
		<-h.Context().Done()
	}
}

// The reply to the removal of a waiter was lost, and the waiter stayed. A retry does no
// harm, and a heartbeat that arrives later does not queue again.
// Regression: redisson#5019
func TestFairRemovalReplyLost(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.Addr)
	direct := s.Dial(t)
	h := acquire(t, newTestClient(t, direct, Options{}).FairMutex("place"))
	c := newTestClient(t, dialRedis(t, p.Addr), Options{})
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		_, err := c.FairMutex("place").Acquire(ctx, WithOwner("gone"), WithReentry())
		failed <- err
	}()
	waitSubscribed(t, c, "{place}:grant")
	entry := direct.LIndex(context.Background(), "{place}:queue", 0).Val()
	p.lose(2)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || !Definite(err) {
		t.Errorf("error %v, want a definite Canceled", err)
	}
	if len(p.Dropped) != 2 {
		t.Errorf("%d replies were lost, want 2", len(p.Dropped))
	}
	id, owner, _ := strings.Cut(entry, " ")
	late := claim{key: "place", owner: owner, id: id, lease: 1000, waiterTTL: 1000}
	if _, err := c.fair.acquire(context.Background(), late); !errors.Is(err, ErrReleased) {
		t.Errorf("late heartbeat: %v, want ErrReleased", err)
	}
	if got := waitersAtServer(t, direct, "place"); len(got) != 0 {
		t.Errorf("%v are still queued", got)
	}
	release(t, h)
}

// A lock without an expiry made its waiters sleep forever.
// Regression: redisson#5503
func TestFairNegativeTTLIsNoEndlessSleep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, impatient)
	h := acquire(t, c.FairMutex("stuck"))
	rdb.Persist(ctx, "stuck")
	served := inTurn(t, rdb, c.FairMutex("stuck"), "next")
	rdb.Del(ctx, "stuck") // no message is published
	release(t, within(t, testTimeout, "the next", served[0]))
	_ = h.Release(ctx)
}

// An entry of the queue without a score stopped every script.
// Regression: redisson#5989
func TestFairQueueAndScoresDisagree(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, impatient)
	for name, harm := range map[string]func(queue, waiters string){
		"no-score":       func(queue, _ string) { rdb.LPush(ctx, queue, "ghost g") },
		"not-queued":     func(_, waiters string) { rdb.ZAdd(ctx, waiters, redis.Z{Score: 9e15, Member: "ghost g"}) },
		"twice":          func(queue, _ string) { rdb.RPush(ctx, queue, rdb.LIndex(ctx, queue, 0).Val()) },
		"scores-removed": func(_, waiters string) { rdb.Del(ctx, waiters) },
		"queue-removed":  func(queue, _ string) { rdb.Del(ctx, queue) },
		"score-removed":  func(queue, waiters string) { rdb.ZRem(ctx, waiters, rdb.LIndex(ctx, queue, 0).Val()) },
		"as-many": func(queue, waiters string) { // as after exchanged, if the waiter's poll comes next
			rdb.RPush(ctx, queue, rdb.LIndex(ctx, queue, 0).Val())
			rdb.ZAdd(ctx, waiters, redis.Z{Score: 9e15, Member: "ghost g"})
		},
		"exchanged": func(queue, waiters string) {
			first := rdb.LIndex(ctx, queue, 0).Val()
			_, err := rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error { // at once: the waiter's poll must not come between
				tx.ZRem(ctx, waiters, first)
				tx.ZAdd(ctx, waiters, redis.Z{Score: 9e15, Member: "ghost g"})
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := acquire(t, c.FairMutex(name))
			served := inTurn(t, rdb, c.FairMutex(name), "a")
			harm(tagged(name, "queue"), tagged(name, "waiters"))
			eventually(t, testTimeout, "queue and scores agree again", func() bool {
				if name == "exchanged" || name == "as-many" { // as many of both: they agree when the lock becomes free
					return true
				}
				entries := rdb.LRange(ctx, tagged(name, "queue"), 0, -1).Val()
				scores := rdb.ZRange(ctx, tagged(name, "waiters"), 0, -1).Val()
				return cmp.Equal(entries, scores) && len(entries) == 1
			})
			release(t, h)
			release(t, within(t, testTimeout, "the waiter", served[0]))
			mustBeRemoved(t, rdb, name)
		})
	}
}

// An entry of another program in the queue stops no script, and nobody waits for it.
func TestFairMutexForeignEntries(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"foreign", "", "7"} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			rdb := startRedis(t).Dial(t)
			m := newTestClient(t, rdb, patient).FairMutex("pool")
			h := acquire(t, m)
			rdb.RPush(ctx, "{pool}:queue", entry)
			rdb.ZAdd(ctx, "{pool}:waiters", redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: entry})
			if waiters, err := m.Queue(ctx); err != nil || len(waiters) > 0 {
				t.Errorf("the queue is %q, %v: want no waiter", waiters, err)
			}
			release(t, h)
			next, err := m.TryAcquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			release(t, next)
			mustExist(t, rdb, "{pool}:queue", false)
			mustExist(t, rdb, "{pool}:waiters", false)
		})
	}
}

// The first waiter dies with its process. It is skipped within seconds, the lock is
// granted to it at most once, and no waiter spins meanwhile (Redisson's did: their wait
// was 0).
// Regression: Redisson's fair lock (waiters behind a dead head spin)
func TestFairDeadHeadIsSkippedWithoutSpinning(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	rdb := s.Dial(t)
	c := newTestClient(t, rdb, Options{})
	h := acquire(t, c.FairMutex("dead"))
	child := exec.Command(os.Args[0], "-test.run=^TestFairChild$")
	child.Env = append(os.Environ(), "LOCK_CHILD="+s.Addr)
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill() }()
	eventually(t, testTimeout, "the child waits", func() bool {
		return cmp.Equal(waitersAtServer(t, rdb, "dead"), []string{"child"})
	})
	served := inTurn(t, rdb, c.FairMutex("dead"), "next")
	_ = child.Process.Kill()
	_ = child.Wait()
	start, before, handed := time.Now(), locktest.Calls(t, rdb, "evalsha"), locktest.Calls(t, rdb, "publish")
	release(t, h)
	next := within(t, testTimeout, "the next", served[0])
	if n := locktest.Calls(t, rdb, "publish") - handed; n < 1 || n > 2 || next.token <= h.token {
		t.Errorf("handed over %d times, token %d after %d: want once to the dead waiter, and then to the next",
			n, next.token, h.token)
	}
	t.Logf("served %v after the death, by %d scripts", time.Since(start), locktest.Calls(t, rdb, "evalsha")-before)
	// A heartbeat a second, and a few scripts for the grants.
	if n := locktest.Calls(t, rdb, "evalsha") - before; n > 8+2*int64(time.Since(start)/time.Second) {
		t.Errorf("%d scripts were run in %v of waiting, want one a second", n, time.Since(start))
	}
	release(t, next)
}

// TestFairChild is the other process of TestFairDeadHeadIsSkippedWithoutSpinning.
func TestFairChild(t *testing.T) {
	t.Parallel()
	addr := os.Getenv("LOCK_CHILD")
	if addr == "" {
		t.Skip("runs only as the other process of TestFairDeadHeadIsSkippedWithoutSpinning")
	}
	c := newTestClient(t, dialRedis(t, addr), Options{})
	acquire(t, c.FairMutex("dead"), WithOwner("child"), WithReentry())
}

// A lock was handed over to a holder that died, and the next waiter, which did not know that it had become the first,
// noticed the end of the lease only at its next heartbeat.
func TestFairFirstWaiterLearnsOfShortLease(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{PollMax: time.Hour})
	h := acquire(t, c.FairMutex("heir"))
	queued := func(n int64) {
		eventually(t, testTimeout, "the waiter is queued", func() bool {
			return rdb.LLen(ctx, tagged("heir", "queue")).Val() == n
		})
	}
	served := make(chan error, 2)
	wait := func(opts ...Option) {
		_, err := c.FairMutex("heir").Acquire(ctx, opts...)
		served <- err
	}
	go wait(WithLease(300 * time.Millisecond)) // and never releases it
	queued(1)
	go wait()
	queued(2)
	if err := h.Release(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := within(t, testTimeout, "a waiter", served); err != nil {
			t.Fatal(err)
		}
	}
}
