package database_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/installed"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/internal/locks/database"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/internal/locks/openable"
	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/topology"
)

// rows are the locks on servers of that kind that have these promises, and lack those.
func rows(t *testing.T, kind string, has, lacks promise.Set) (list []client.Spec) {
	t.Helper()
	for _, row := range locks.Catalog() {
		if slices.Contains(row.Topologies, kind) && row.Can.Has(has) && !row.Can.Any(lacks) {
			row, err := openable.Lookup(row.Name)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, row)
		}
	}
	return list
}

const long = time.Minute // of a wait that ends earlier

// each calls do for each database, with a server of it.
func each(t *testing.T, do func(t *testing.T, kind string, c *process.Cluster)) {
	for kind, find := range map[string]func(context.Context) (installed.Software, error){
		topology.Postgres: installed.Postgres, topology.MySQL: installed.MySQL,
	} { // order does not matter: they are independent
		t.Run(kind, func(t *testing.T) {
			if _, err := find(t.Context()); err != nil {
				t.Skip("NOT RUN: ", err)
			}
			c, err := process.Start(t.Context(), process.Config{Topology: cluster.Topology{Kind: kind}, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
			do(t, kind, c)
		})
	}
}

// eachRow is each for each of the locks that have these promises, and lack those.
func eachRow(t *testing.T, has, lacks promise.Set, do func(t *testing.T, c *process.Cluster, row client.Spec)) {
	each(t, func(t *testing.T, kind string, c *process.Cluster) {
		for _, row := range rows(t, kind, has, lacks) {
			t.Run(row.Name, func(t *testing.T) { do(t, c, row) })
		}
	})
}

// open opens a lock for client n.
func open(t *testing.T, c *process.Cluster, row client.Spec, n int) client.Locker {
	t.Helper()
	l, err := row.Open(client.Setup{Endpoints: c.Endpoints(n), Seed: uint64(n)}, func(client.Reply) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

// request is a request of an owner for the lock of a test. Its wait is 0: it is a try.
func request(row client.Spec, owner string) client.Acquire {
	a := client.Acquire{Key: "lock of " + row.Name, Owner: owner, Permits: 1, Limit: 1}
	if !row.Can.Has(promise.Unleased) {
		a.Lease = time.Hour
	}
	return a
}

// waits is a request that waits.
func waits(a client.Acquire, wait time.Duration) client.Acquire {
	a.Wait = wait
	return a
}

// acquire acquires a lock, as package client does, again if it was not requested: a busy machine may take too long to
// begin a session.
func acquire(t *testing.T, l client.Locker, a client.Acquire) (g client.Grant, err error) {
	t.Helper()
	for again := true; again; again = errors.Is(err, native.ErrNoSession) && t.Context().Err() == nil {
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if a.Wait > 0 {
			ctx, cancel = context.WithTimeout(ctx, a.Wait)
		}
		g, err = l.Acquire(ctx, a)
		cancel()
	}
	return g, err
}

func granted(t *testing.T, l client.Locker, a client.Acquire) client.Grant {
	t.Helper()
	g, err := acquire(t, l, a)
	if err != nil {
		t.Fatalf("%s is not granted %s: %v", a.Owner, a.Key, err)
	}
	return g
}

func release(t *testing.T, l client.Locker, a client.Acquire) {
	t.Helper()
	if _, err := l.Release(t.Context(), a.Hold()); err != nil {
		t.Fatalf("%s does not release %s: %v", a.Owner, a.Key, err)
	}
}

// holder is the holder that the server shows. On a busy machine one sample may time out; it tries again.
func holder(t *testing.T, c *process.Cluster, row client.Spec) history.KeyState {
	t.Helper()
	key := request(row, "").Key
	var s history.Sample
	locktest.Eventually(t, long, "a sample", func() bool {
		s = c.Sample(t.Context(), "n1", []string{key})
		return s.Up
	})
	return s.Keys[key]
}

// TestLocks: a lock has one owner at a time, whom the server shows; a try does not wait, an acquire waits for the
// release or until its time is over, and only a holder can release.
func TestLocks(t *testing.T) {
	eachRow(t, 0, 0, func(t *testing.T, c *process.Cluster, row client.Spec) {
		a, b := open(t, c, row, 0), open(t, c, row, 1)
		alice, bob := request(row, "alice"), request(row, "bob")
		first := granted(t, a, alice)
		if seen := holder(t, c, row); seen.Owner != "alice" || seen.Token != first.Token {
			t.Errorf("the server shows %+v, want alice with token %d", seen, first.Token)
		}
		for _, refused := range []client.Acquire{bob, waits(bob, 50*time.Millisecond)} {
			if _, err := acquire(t, b, refused); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("with a wait of %v, bob gets %v, want ErrHeld", refused.Wait, err)
			}
		}
		if _, err := b.Release(t.Context(), bob.Hold()); !errors.Is(err, client.ErrNotHeld) {
			t.Errorf("bob releases the lock of alice: %v", err)
		}
		second := make(chan client.Grant, 1)
		go func() {
			g, err := acquire(t, b, waits(bob, long))
			if err != nil {
				t.Error(err)
			}
			second <- g
		}()
		release(t, a, alice)
		if g := <-second; row.Can.Has(promise.Fenced) && (first.Token == 0 || g.Token <= first.Token) {
			t.Errorf("token %d after %d", g.Token, first.Token)
		}
		if seen := holder(t, c, row); seen.Owner != "bob" {
			t.Errorf("the server shows %+v, want bob", seen)
		}
		release(t, b, bob)
		if seen := holder(t, c, row); seen.Owner != "" {
			t.Errorf("the server shows %+v after the last release", seen)
		}
	})
}

// TestReleaseWhileAnotherWaits: a client that waits for a lock can release another one meanwhile.
func TestReleaseWhileAnotherWaits(t *testing.T) {
	eachRow(t, 0, 0, func(t *testing.T, c *process.Cluster, row client.Spec) {
		a := open(t, c, row, 0)
		alice, bob := request(row, "alice"), request(row, "bob")
		granted(t, a, alice)
		done := make(chan error, 1)
		go func() {
			_, err := acquire(t, a, waits(bob, long))
			done <- err
		}()
		release(t, a, alice)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestLeases: a lease ends a hold, after which its owner can neither renew nor release, and a renewal extends it.
func TestLeases(t *testing.T) {
	eachRow(t, promise.Renew, 0, func(t *testing.T, c *process.Cluster, row client.Spec) {
		a, b := open(t, c, row, 0), open(t, c, row, 1)
		alice, bob := request(row, "alice"), request(row, "bob")
		alice.Lease = 100 * time.Millisecond
		first := granted(t, a, alice)
		second := granted(t, b, waits(bob, long))
		if time.Now().Before(first.Deadline) || second.Token <= first.Token {
			t.Errorf("bob has the lock before %v, with token %d after %d", first.Deadline, second.Token, first.Token)
		}
		if _, err := a.Renew(t.Context(), alice.Hold(), 0); !errors.Is(err, client.ErrNotHeld) {
			t.Errorf("alice renews a lost hold: %v", err)
		}
		if _, err := a.Release(t.Context(), alice.Hold()); !errors.Is(err, client.ErrNotHeld) {
			t.Errorf("alice releases a lost hold: %v", err)
		}
		renewed, err := b.Renew(t.Context(), bob.Hold(), 24*time.Hour)
		if seen := holder(t, c, row); err != nil || renewed.Token != second.Token || seen.TTL <= bob.Lease ||
			!renewed.Deadline.After(second.Deadline) {
			t.Errorf("renewal: %+v, %v; the server shows %+v", renewed, err, seen)
		}
	})
}

// cut cuts client 0 off, or connects it again.
func cut(t *testing.T, c *process.Cluster, rule cluster.Rule) {
	t.Helper()
	link := cluster.Link{From: cluster.ClientName(0), To: "n1"}
	if err := c.SetRule(link, cluster.Both, rule); err != nil {
		t.Fatal(err)
	}
}

// TestSessionEnds: the lock of a session or a transaction is free when its connection is cut. Its client is not
// notified, cannot release, and can acquire again.
func TestSessionEnds(t *testing.T) {
	eachRow(t, promise.Unleased, promise.KeepsGrants, func(t *testing.T, c *process.Cluster, row client.Spec) {
		a, b := open(t, c, row, 0), open(t, c, row, 1)
		alice, bob := request(row, "alice"), request(row, "bob")
		granted(t, a, alice)
		cut(t, c, cluster.Rule{Mode: cluster.Cut})
		granted(t, b, waits(bob, long))
		cut(t, c, cluster.Rule{})
		if _, err := a.Release(t.Context(), alice.Hold()); err == nil {
			t.Error("alice releases the lock that bob has")
		}
		release(t, b, bob)
		granted(t, a, waits(alice, long))
		release(t, a, alice)
	})
}

// TestRowsStay: the lock of a row stays when the connection of its holder is cut, who releases it in another session.
func TestRowsStay(t *testing.T) {
	eachRow(t, promise.KeepsGrants, 0, func(t *testing.T, c *process.Cluster, row client.Spec) {
		a, b := open(t, c, row, 0), open(t, c, row, 1)
		alice, bob := request(row, "alice"), request(row, "bob")
		granted(t, a, alice)
		cut(t, c, cluster.Rule{Mode: cluster.Cut})
		if _, err := acquire(t, b, bob); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("bob gets %v, want ErrHeld", err)
		}
		if _, err := a.Release(t.Context(), alice.Hold()); !row.Definite(err) {
			t.Errorf("a release that cannot be sent: %v", err)
		}
		cut(t, c, cluster.Rule{})
		release(t, a, alice)
		granted(t, b, bob)
	})
}

// TestRowsStayInARestart: the lock of a row is there after a kill of the server, and its holder releases it.
func TestRowsStayInARestart(t *testing.T) {
	each(t, func(t *testing.T, kind string, c *process.Cluster) {
		all := rows(t, kind, promise.KeepsGrants, 0)
		var holders []client.Locker
		for i, row := range all {
			holders = append(holders, open(t, c, row, i))
			granted(t, holders[i], request(row, "alice"))
		}
		if err := c.Kill(t.Context(), "n1"); err != nil {
			t.Fatal(err)
		}
		if err := c.Restart(t.Context(), "n1"); err != nil {
			t.Fatal(err)
		}
		for i, row := range all {
			if seen := holder(t, c, row); seen.Owner != "alice" {
				t.Errorf("%s: the server shows %+v, want alice", row.Name, seen)
			}
			release(t, holders[i], request(row, "alice"))
		}
	})
}

// TestClientClock: a client whose clock is ahead takes a lock that is held, if the clocks of clients end the lease.
func TestClientClock(t *testing.T) {
	eachRow(t, promise.Renew, 0, func(t *testing.T, c *process.Cluster, row client.Spec) {
		a, b := open(t, c, row, 0), open(t, c, row, 1)
		granted(t, a, request(row, "alice"))
		b.(*database.Table).Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
		_, err := acquire(t, b, request(row, "bob"))
		if taken := row.Name == "sql-lease-client-clock"; taken && err != nil || !taken && !errors.Is(err, lock.ErrHeld) {
			t.Errorf("bob gets %v", err)
		}
	})
}

// TestOptions: the locks with leases have one option, and the others none.
func TestOptions(t *testing.T) {
	for _, row := range slices.Concat(rows(t, topology.Postgres, 0, 0), rows(t, topology.MySQL, 0, 0)) {
		err := row.CheckOptions(map[string]string{"clock_skew": "1s"})
		if leased := row.Can.Has(promise.Renew); leased != (err == nil) {
			t.Errorf("%s: clock_skew: %v", row.Name, err)
		}
		for name, text := range map[string]string{"clock_skew": "a second", "lease": "1s"} {
			if row.CheckOptions(map[string]string{name: text}) == nil {
				t.Errorf("%s accepts %s: %s", row.Name, name, text)
			}
		}
	}
}
