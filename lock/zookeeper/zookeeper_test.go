package zookeeper

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
	"github.com/lockchaos/lockchaos/lock/internal/queues"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// TestLocks: the common parts of packages etcd and zookeeper. One server serves all cases, each below a root of its
// own, because to start a server takes longer than most cases.
func TestLocks(t *testing.T) {
	addr, cases := startZooKeeper(t), 0
	sessiontest.Run(t, func(t testing.TB) *sessiontest.Proxied {
		cases++
		return sessiontest.Behind(t, newBackend(t, addr, fmt.Sprint("/case-", cases)))
	})
}

// TestConformance: every kind of lock passes the tests of package locktest, where its faults do not need Redis.
func TestConformance(t *testing.T) { sessiontest.Conformance(t, startServer) }

// TestRenewed: a hold outlasts its session timeout, because its client renews the session.
func TestRenewed(t *testing.T) {
	renewed := make(chan time.Time, 1)
	c := open(t, startBackend(t).addr, Options{Session: sessiontest.ShortLease, OnRenewed: func(h *Hold) {
		select {
		case renewed <- h.Deadline():
		default:
		}
	}})
	h := sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")
	first := h.Deadline()
	for later := range renewed {
		if later.After(first.Add(sessiontest.ShortLease)) {
			break
		}
	}
	if err := h.Err(); err != nil {
		t.Errorf("the hold has ended: %v", err)
	}
	sessiontest.Release(t, h)
}

// TestPredecessor: of several nodes before one it is the last, also where the numbers wrap.
func TestPredecessor(t *testing.T) {
	mutex := queue{kind: queues.Exclusive()}
	for own, want := range map[string]string{
		"a-lock-2147483646": "", "b-lock-2147483647": "a-lock-2147483646", "c-lock--2147483648": "b-lock-2147483647",
		"d-lock--2147483647": "c-lock--2147483648",
	} {
		names := []string{"d-lock--2147483647", "b-lock-2147483647", "a-lock-2147483646", "c-lock--2147483648"}
		if got := mutex.turn(own, names); got.After != want || !got.Found {
			t.Errorf("before %s: %q, %v, want %q", own, got.After, got.Found, want)
		}
	}
	if mutex.turn("x-lock-0000000001", []string{"y-lock-0000000001"}).Found {
		t.Error("a node that is not there was found")
	}
}

// TestTurns of requests for permits: a prefix of the queue is served, also where numbers wrap, and a node that is no
// request for permits counts for all.
func TestTurns(t *testing.T) {
	names := []string{"c-1of3--2147483648", "a-2of3-2147483646", "d-2of3--2147483647", "b-1of3-2147483647", "e-1of3--2147483646"}
	for own, want := range map[string]queues.Turn{
		"a-2of3-2147483646":  {Found: true, Now: true, Any: true, Announce: true},
		"b-1of3-2147483647":  {Found: true, Now: true, Any: true, Announce: true, After: "a-2of3-2147483646"},
		"c-1of3--2147483648": {Found: true, Any: true, After: "b-1of3-2147483647"},
		"d-2of3--2147483647": {Found: true, After: "c-1of3--2147483648"},
		"x-1of3-0000000001":  {},
	} {
		if got := (&queue{kind: queues.Permits(1, 3)}).turn(own, names); got != want {
			t.Errorf("%s: %+v, want %+v", own, got, want)
		}
	}
	if got := (&queue{kind: queues.Permits(1, 3)}).turn("b-1of3-0000000002", []string{"a-lock-0000000001", "b-1of3-0000000002"}); got.Now {
		t.Error("a permit beside a mutex")
	}
	if got := (&queue{kind: queues.Shared()}).turn("b-read-0000000002", []string{"a-1of3-0000000001", "b-read-0000000002"}); got.Now {
		t.Error("a reader beside a permit")
	}
}

// TestReconnect: each server is tried once without a pause, which then grows with each round; a server that answers a
// handshake ends that.
func TestReconnect(t *testing.T) {
	h := &hosts{session: &session{Session: sessions.New(&sessions.Settings{})}}
	if err := h.Init([]string{"a", "b", "c"}); err != nil {
		t.Fatal(err)
	}
	next := func(n int) (all string, waited []time.Duration) {
		for range n {
			server, _ := h.Next()
			all += server
			waited = append(waited, h.wait()/time.Millisecond)
		}
		return all, waited
	}
	servers, waited := next(18)
	if want := []time.Duration{0, 0, 0, 10, 0, 0, 20, 0, 0, 40, 0, 0, 80, 0, 0, 80, 0, 0}; servers != "abcabcabcabcabcabc" ||
		!slices.Equal(waited, want) {
		t.Errorf("servers %s after %v ms, want all in turn after %v", servers, waited, want)
	}
	h.Connected()
	if servers, waited := next(4); servers != "abca" || !slices.Equal(waited, []time.Duration{0, 0, 0, 10}) {
		t.Errorf("after a connection: servers %s after %v ms", servers, waited)
	}
}

// TestBadInput is refused before a request is sent.
func TestBadInput(t *testing.T) {
	for name, o := range map[string]Options{
		"negative session": {Session: -1}, "margin of a whole session": {Session: time.Second, Margin: time.Second},
		"negative timeout": {Timeout: -1}, "relative root": {Root: "locks"},
	} {
		if _, err := Open([]string{"127.0.0.1:1"}, o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := Open(nil, Options{}); err == nil {
		t.Error("no server is accepted")
	}
	c, err := Open([]string{"127.0.0.1:1"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	sessiontest.BadNames(t, sessiontest.ClientOf(c, c.Close), "", ".", "..", "a/b", marksName)
}

// TestNestedRoots: a lock and the locks of a root that has its name do not exclude each other.
func TestNestedRoots(t *testing.T) {
	addr := startZooKeeper(t)
	outer, inner := open(t, addr, Options{}), open(t, addr, Options{Root: "/locks/billing"})
	invoice := sessiontest.Acquire(t, inner.Mutex("invoice-lock").Acquire, "a")
	billing, err := outer.Mutex("billing").TryAcquire(t.Context(), "b")
	if err != nil {
		t.Fatalf("a free lock whose name is a root: %v", err)
	}
	if _, err := inner.Mutex("invoice-8").TryAcquire(t.Context(), "c"); err != nil {
		t.Errorf("a free lock below a held one: %v", err)
	}
	sessiontest.Release(t, billing)
	sessiontest.Release(t, invoice)
}
