package client

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/lock/locktest"
)

// onServer is a native client of the lock that row describes.
// Seeds of clients differ, as in a run: they draw their ids from them.
func onServer(t *testing.T, row Spec, addr string, seed uint64, options map[string]string) (*Native, chan Reply) {
	t.Helper()
	notices := make(chan Reply, 100)
	n := NewNative(func(r Reply) { notices <- r }, Mono)
	setup := Setup{
		Lock: row.Name, Seed: seed, Options: options,
		Endpoints: Endpoints{Kind: Single, Addrs: []string{addr}},
	}
	if reply := n.Handle(t.Context(), Request{ID: 1, Op: Init, Setup: &setup}); reply.Type != "ok" {
		t.Fatalf("init: %+v", reply)
	}
	t.Cleanup(func() { n.Handle(context.Background(), Request{ID: 99, Op: Close}) })
	return n, notices
}

// Every kind of package lock, as a workload sees it: exclusive, its tokens grow, it
// re-enters if it says so, and leaves what it says.
func TestKindsAsTheHarnessSeesThem(t *testing.T) {
	server := locktest.StartServer(t)
	direct := server.Dial(t)
	for _, row := range append([]Spec{reentrantSpec}, kindSpecs()...) {
		t.Run(row.Name, func(t *testing.T) {
			direct.FlushAll(t.Context())
			a, _ := onServer(t, row, server.Addr, 1, nil)
			b, _ := onServer(t, row, server.Addr, 2, nil)
			ask := func(n *Native, op, owner, want string) Reply {
				t.Helper()
				r := n.Handle(t.Context(), Request{ID: 2, Op: op, Key: "k", Owner: owner, LeaseMS: 60000, WaitMS: 20000})
				if r.Type != want {
					t.Fatalf("%s of %s: %+v, want %s", op, owner, r, want)
				}
				return r
			}
			first := ask(a, history.Acquire, "o1", "ok")
			if row.Fenced != (first.Token > 0) || (first.ValidMS > 0) != (row.Name != "semaphore") {
				t.Errorf("grant %+v: want a token: %v, and a promise unless there is no lease", first, row.Fenced)
			}
			if r := ask(b, history.Try, "o2", "fail"); r.Code != "held" {
				t.Errorf("try: %+v, want code held", r)
			}
			if row.Reentrant {
				if inner := ask(a, history.Acquire, "o1", "ok"); inner.Count != 2 || inner.Token != first.Token {
					t.Errorf("re-entry: %+v, want the second hold with token %d", inner, first.Token)
				}
				ask(a, history.Release, "o1", "ok")
				ask(b, history.Try, "o2", "fail")
			} else {
				ask(a, history.Try, "o1", "fail")
			}
			ask(a, history.Renew, "o1", "ok")
			ask(a, history.Release, "o1", "ok")
			ask(a, history.Release, "o1", "fail")
			if next := ask(b, history.Acquire, "o2", "ok"); row.Fenced && next.Token <= first.Token {
				t.Errorf("token %d after %d", next.Token, first.Token)
			}
			ask(b, history.Release, "o2", "ok")
			keys := slices.DeleteFunc(direct.Keys(t.Context(), "*").Val(), func(key string) bool {
				return strings.Contains(key, ":tombstone:") // they end by themselves
			})
			slices.Sort(keys)
			if diff := cmp.Diff(row.PersistentKeys("k"), keys); diff != "" {
				t.Errorf("left behind (-want +got):\n%s", diff)
			}
		})
	}
}

// The loss and the renewal of each kind that has a lease are told under the
// key and the owner that the harness knows.
func TestKindsTellOfLossAndRenewal(t *testing.T) {
	server := locktest.StartServer(t)
	for _, row := range kindSpecs() {
		if row.Name == "semaphore" {
			continue // it has no lease, so nobody tells that it was taken away
		}
		t.Run(row.Name, func(t *testing.T) {
			n, notices := onServer(t, row, server.Addr, 1, map[string]string{"lease": "3s"})
			n.Handle(t.Context(), Request{ID: 2, Op: history.Acquire, Key: "k", Owner: "me", WaitMS: 20000})
			expect := func(event string) {
				t.Helper()
				limit := time.After(30 * time.Second)
				for {
					select {
					case r := <-notices:
						if r.Key != "k" || r.Owner != "me" {
							t.Fatalf("%+v: want the key and owner that were asked for", r)
						}
						if r.Event == event {
							return
						}
					case <-limit:
						t.Fatalf("nobody told that it was %s", event)
					}
				}
			}
			expect("renewed")
			server.Dial(t).FlushAll(t.Context())
			expect("lost")
		})
	}
}

// A semaphore has as many permits as the workload says, and gives out no more.
func TestSemaphoresTakeTheLimit(t *testing.T) {
	server := locktest.StartServer(t)
	for _, row := range kindSpecs() {
		if !row.Permits {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			server.Dial(t).FlushAll(t.Context())
			n, _ := onServer(t, row, server.Addr, 1, nil)
			for i, step := range []struct {
				op, owner string
				permits   int
				want      string
			}{
				{history.Try, "o1", 2, "ok"}, {history.Try, "o2", 2, "fail"}, {history.Try, "o3", 1, "ok"},
				{history.Try, "o4", 1, "fail"}, {history.Release, "o1", 2, "ok"}, {history.Try, "o5", 2, "ok"},
			} {
				r := n.Handle(t.Context(), Request{
					ID: int64(2 + i), Op: step.op, Key: "k", Owner: step.owner, LeaseMS: 60000, Permits: step.permits, Limit: 3,
				})
				if r.Type != step.want || r.Count != 0 {
					t.Fatalf("step %d, %s of %d by %s: %+v, want %s", i, step.op, step.permits, step.owner, r, step.want)
				}
			}
		})
	}
}

// A reader and a reader go together, a reader and a writer do not.
func TestReadersWriterTakesModes(t *testing.T) {
	server := locktest.StartServer(t)
	row, err := Lookup("readers-writer")
	if err != nil {
		t.Fatal(err)
	}
	n, _ := onServer(t, row, server.Addr, 1, nil)
	for i, tt := range []struct{ mode, want string }{{"read", "ok"}, {"read", "ok"}, {"write", "fail"}, {"", "fail"}} {
		r := n.Handle(t.Context(), Request{
			ID: 2, Op: history.Try, Key: "k", Owner: string(rune('a' + i)), Mode: tt.mode, LeaseMS: 60000,
		})
		if r.Type != tt.want || r.Token != 0 {
			t.Errorf("ask %d, mode %q: %+v, want %s, and no token for readers", i+1, tt.mode, r, tt.want)
		}
	}
}
