package locks

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/promise"
)

func TestKindsConformToTheirRows(t *testing.T) {
	server := locktest.StartServer(t)
	direct := server.Dial(t)
	for _, row := range append([]client.Spec{reentrantSpec()}, kindSpecs()...) {
		if row.Can.Has(promise.Latch) {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			direct.FlushAll(t.Context())
			a, _ := onServer(t, row, server.Addr, 1, nil)
			b, _ := onServer(t, row, server.Addr, 2, nil)
			do := func(n *testClient, op, owner, want string) client.Reply {
				t.Helper()
				a := client.Acquire{Key: "k", Owner: owner, Lease: time.Minute, Wait: 20 * time.Second}
				r := n.handle(t.Context(), client.Request{ID: 2, Op: op, Acquire: a})
				if r.Type != want {
					t.Fatalf("%s of %s: %+v, want %s", op, owner, r, want)
				}
				return r
			}
			first := do(a, history.Acquire, "o1", "ok")
			if row.Can.Has(promise.Fenced) != (first.Token > 0) || (first.ValidMS > 0) != (row.Name != "semaphore") {
				t.Errorf("grant %+v: want a token: %v, and a validity if there is a lease", first, row.Can.Has(promise.Fenced))
			}
			if r := do(b, history.Try, "o2", "fail"); r.Code != "held" {
				t.Errorf("try: %+v, want code held", r)
			}
			if row.Can.Has(promise.Reentrant) {
				if inner := do(a, history.Acquire, "o1", "ok"); inner.Count != 2 || inner.Token != first.Token {
					t.Errorf("re-entry: %+v, want the second hold with token %d", inner, first.Token)
				}
				do(a, history.Release, "o1", "ok")
				do(b, history.Try, "o2", "fail")
			} else if r := do(a, history.Try, "o1", "fail"); (r.Code == "reentered") != row.Can.Has(promise.RefusesReentry) {
				t.Errorf("re-entry: %+v", r)
			}
			do(a, history.Renew, "o1", "ok")
			do(a, history.Release, "o1", "ok")
			do(a, history.Release, "o1", "fail")
			if next := do(b, history.Acquire, "o2", "ok"); row.Can.Has(promise.Fenced) && next.Token <= first.Token {
				t.Errorf("token %d after %d", next.Token, first.Token)
			}
			if row.Can.Has(promise.Guard) {
				guardsRefuseOldTokens(t, a, b, first.Token)
			}
			do(b, history.Release, "o2", "ok")
			keys := slices.DeleteFunc(direct.Keys(t.Context(), "*").Val(), func(key string) bool {
				return strings.Contains(key, ":tombstone:") || strings.Contains(key, ":guard:run:") ||
					strings.HasPrefix(key, "redisson_unlock_latch:") // they expire
			})
			slices.Sort(keys)
			want := slices.DeleteFunc(row.PersistentKeys("k"), func(key string) bool {
				return strings.HasSuffix(key, ":permits") // there is none that was not released
			})
			if diff := cmp.Diff(want, keys); diff != "" {
				t.Errorf("left behind (-want +got):\n%s", diff)
			}
			for _, key := range keys {
				expires := row.ExpiringKeys != nil && slices.Contains(row.ExpiringKeys("k"), key)
				if ttl := direct.PTTL(t.Context(), key).Val(); expires != (ttl > 0) {
					t.Errorf("%s has a TTL of %v, and is to expire: %v", key, ttl, expires)
				}
			}
		})
	}
}

// guardsRefuseOldTokens presents an old token, twice, and a newer one by another client before it is presented again.
func guardsRefuseOldTokens(t *testing.T, a, b *testClient, old uint64) {
	t.Helper()
	for i, step := range []struct {
		n     *testClient
		token uint64
		want  string
	}{{a, old, "ok"}, {a, old, "ok"}, {b, old + 1, "ok"}, {a, old, "fail"}, {b, old, "fail"}, {a, old + 1, "ok"}} {
		r := step.n.handle(t.Context(), client.Request{ID: 5, Op: history.Guard, Acquire: client.Acquire{Key: "k"}, Token: step.token})
		if r.Type != step.want || (r.Code == history.CodeStale) != (step.want == "fail") {
			t.Errorf("guard %d: %+v, want %s", i, r, step.want)
		}
	}
}

// Every kind with a lease reports loss and renewal with key and owner of the request.
func TestKindsReportLossAndRenewal(t *testing.T) {
	server := locktest.StartServer(t)
	for _, row := range kindSpecs() {
		if !row.Can.Has(promise.ReportsLoss) {
			continue // without a lease a loss is not noticed
		}
		t.Run(row.Name, func(t *testing.T) {
			n, notices := onServer(t, row, server.Addr, 1, map[string]string{"lease": "3s"})
			a := client.Acquire{Key: "k", Owner: "me", Wait: 20 * time.Second}
			n.handle(t.Context(), client.Request{ID: 2, Op: history.Acquire, Acquire: a})
			expect := func(event string) {
				t.Helper()
				limit := time.After(30 * time.Second)
				for {
					select {
					case r := <-notices:
						if r.Key != "k" || r.Owner != "me" {
							t.Fatalf("%+v: want key and owner of the request", r)
						}
						if r.Event == event {
							return
						}
					case <-limit:
						t.Fatalf("no notice %q", event)
					}
				}
			}
			if row.Can.Has(promise.Watchdog) {
				expect("renewed")
			}
			server.Dial(t).FlushAll(t.Context())
			expect("lost")
		})
	}
}

// A semaphore grants as many permits as the workload configures, and no more.
func TestSemaphoresTakeTheLimit(t *testing.T) {
	server := locktest.StartServer(t)
	for _, row := range kindSpecs() {
		if !row.Can.Has(promise.Permits) {
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
				r := n.handle(t.Context(), client.Request{
					ID: int64(2 + i), Op: step.op,
					Acquire: client.Acquire{Key: "k", Owner: step.owner, Lease: time.Minute, Permits: step.permits, Limit: 3},
				})
				if r.Type != step.want || r.Count != 0 {
					t.Fatalf("step %d, %s of %d by %s: %+v, want %s", i, step.op, step.permits, step.owner, r, step.want)
				}
			}
		})
	}
}

// Readers share the lock, and a token; a writer excludes them.
func TestReadersWriterTakesModes(t *testing.T) {
	server := locktest.StartServer(t)
	row, err := Lookup("readers-writer")
	if err != nil {
		t.Fatal(err)
	}
	n, _ := onServer(t, row, server.Addr, 1, nil)
	token := uint64(0)
	for i, tt := range []struct{ mode, want string }{{"read", "ok"}, {"read", "ok"}, {"write", "fail"}, {"", "fail"}} {
		r := n.handle(t.Context(), client.Request{
			ID: 2, Op: history.Try,
			Acquire: client.Acquire{Key: "k", Owner: string(rune('a' + i)), Mode: tt.mode, Lease: time.Minute},
		})
		if i == 0 {
			token = r.Token
		}
		if r.Type != tt.want || r.Type == "ok" && (r.Token == 0 || r.Token != token) {
			t.Errorf("try %d, mode %q: %+v, want %s, and one token for readers", i+1, tt.mode, r, tt.want)
		}
	}
}

// The locks of a multi-lock are in the slot of its key, whether or not that has a hash tag, and notices about any of
// them name the key.
func TestMultiKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, second string }{
		{"orders", "{orders}:b"}, {"orders{shop}", "orders{shop}:b"}, {"{shop}orders", "{shop}orders:b"},
		{"orders:1", "{orders:1}:b"},
	} {
		names := native.MultiKeys(c.key)
		if names[1] != c.second {
			t.Errorf("%q: the second lock is %q, want %q", c.key, names[1], c.second)
		}
		for _, name := range names {
			if got := keyOf(name); got != c.key {
				t.Errorf("%q is a lock for %q, want %q", name, got, c.key)
			}
		}
	}
}
