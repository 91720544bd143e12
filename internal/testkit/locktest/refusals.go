package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// refusals is the behavior of a lock when a server refuses commands that it executed before.
func refusals() []behavior {
	return []behavior{
		{"publish-refused", toleratesRefusals, publishRefused},
		{"subscribe-refused", toleratesRefusals, subscribeRefused},
		{"memory-full-release", toleratesRefusals, memoryFullRelease},
		{"memory-full-renewal", func(s Spec) bool { return s.ToleratesRefusals && s.Renews }, memoryFullRenewal},
		{"memory-full-wait", toleratesRefusals, memoryFullWait},
	}
}

func toleratesRefusals(s Spec) bool { return s.ToleratesRefusals }

// doAllUntilEnd is doAll, undone by another command when the behavior ends.
func (s *fixture) doAllUntilEnd(t *testing.T, args, undo []any) {
	t.Helper()
	t.Cleanup(func() { s.servers.doAll(t, "undo", undo...) })
	s.servers.doAll(t, "refuse", args...)
}

// publishRefused: the user has no channel rights, which is the default of a user that Redis 7 creates. A release has
// happened even so, and must not be reported as an error.
func publishRefused(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, s.longLease())
	next := s.acquireAsync(context.Background(), s.b, s.longLease())
	s.awaitWaiting(t)
	s.doAllUntilEnd(t, []any{"ACL", "SETUSER", "default", "resetchannels"},
		[]any{"ACL", "SETUSER", "default", "allchannels"})
	s.release(t, h)
	s.release(t, awaitGrant(t, s.spec.wakeWithin(), next))
	s.mustBeFree(t, s.a)
}

// subscribeRefused: nothing wakes a waiter, so it polls. It must not connect again and again.
func subscribeRefused(t *testing.T, s *fixture) {
	s.mustBeFree(t, s.b)
	refuse := []any{"ACL", "SETUSER", "default", "-subscribe", "-psubscribe"}
	known, err := s.servers.direct[0].Do(context.Background(), "COMMAND", "INFO", "SSUBSCRIBE").Slice()
	if err != nil {
		t.Fatal(err)
	}
	if len(known) == 1 && known[0] != nil { // Redis 7.0
		refuse = append(refuse, "-ssubscribe")
	}
	s.doAllUntilEnd(t, refuse, []any{"ACL", "SETUSER", "default", "+@all"})
	h := s.acquire(t, s.a, s.longLease())
	before, began := s.connsOpened(t), time.Now()
	for range 3 { // waiters that leave
		ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
		o := await(t, timeout, s.acquireAsync(ctx, s.b, s.longLease()))
		cancel()
		if o.err == nil {
			t.Fatal("the lock was granted while it is held")
		}
	}
	s.handOver(t, h, s.b)
	// A client that connects at every refusal opens hundreds in a second; one with a back-off of 100 ms opens ten.
	took := time.Since(began)
	if opened := s.connsOpened(t) - before; opened > 10+int(took/(50*time.Millisecond)) {
		t.Errorf("%d connections were opened in %v in which SUBSCRIBE was refused", opened, took)
	}
}

// connsOpened is how many connections the masters have accepted so far.
func (s *fixture) connsOpened(t *testing.T) int {
	t.Helper()
	return s.sumOfInfo(t, "total_connections_received", func(rdb *redis.Client) *redis.StringCmd {
		return rdb.Info(context.Background(), "stats")
	})
}

// fillMemory makes the servers refuse commands that may need memory.
func (s *fixture) fillMemory(t *testing.T) {
	t.Helper()
	s.doAllUntilEnd(t, []any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"})
	if err := s.servers.direct[0].Set(context.Background(), "locktest-probe", "", 0).Err(); err == nil {
		t.Fatal("the server accepts writes although its memory is full: the test would test nothing")
	}
}

// freeMemory undoes fillMemory.
func (s *fixture) freeMemory(t *testing.T) {
	t.Helper()
	s.servers.doAll(t, "free memory", "CONFIG", "SET", "maxmemory", "0")
}

// memoryFullRelease: the release of a held lock needs no memory.
func memoryFullRelease(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, s.longLease())
	s.fillMemory(t)
	s.release(t, h)
	s.freeMemory(t)
	s.mustBeFree(t, s.b)
}

// memoryFullRenewal: a renewal needs no memory.
func memoryFullRenewal(t *testing.T, s *fixture) {
	s.outlastsLease(t, s.a, func() { s.fillMemory(t) }, func() { s.freeMemory(t) })
}

// memoryFullWait: full memory passes, as a failover does, and an acquire waits for that.
func memoryFullWait(t *testing.T, s *fixture) {
	s.mustBeFree(t, s.a)
	s.fillMemory(t)
	refused := s.requestCount(t)
	next := s.acquireAsync(context.Background(), s.b, s.longLease())
	Eventually(t, timeout, "the acquire was refused", func() bool { return len(next) > 0 || s.requestCount(t) > refused })
	s.freeMemory(t)
	o := await(t, timeout, next)
	if o.err != nil || errors.Is(o.err, s.spec.ErrHeld) {
		t.Fatalf("an acquire did not wait until memory was free: %v", o.err)
	}
	s.release(t, o.hold)
}
