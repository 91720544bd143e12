package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/installed"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/locks/database"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock"
)

// The tests of these locks beside those of other databases are in package locks/database. These are about MySQL.

// setup is that of client n of a new server.
func setup(t *testing.T) func(n int) client.Setup {
	t.Helper()
	c := start(t)
	return func(n int) client.Setup { return client.Setup{Endpoints: c.Endpoints(n), Seed: uint64(n)} }
}

// start starts a server.
func start(t *testing.T) *process.Cluster {
	t.Helper()
	if _, err := installed.MySQL(t.Context()); err != nil {
		t.Skip("NOT RUN: ", err)
	}
	c, err := process.Start(t.Context(), process.Config{Topology: cluster.Topology{Kind: cluster.MySQL}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// open opens the lock of that name.
func open(t *testing.T, name string, s client.Setup) client.Locker {
	t.Helper()
	l, err := Opens(client.Spec{Name: name}).Open(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

// acquire acquires a lock, again if it was not requested: a busy machine may take too long to begin a session.
func acquire(t *testing.T, l client.Locker, key, owner string, wait time.Duration) error {
	t.Helper()
	for {
		_, err := l.Acquire(t.Context(), client.Acquire{Key: key, Owner: owner, Wait: wait})
		if !errors.Is(err, native.ErrNoSession) || t.Context().Err() != nil {
			return err
		}
	}
}

// TestWaits: a wait ends to the millisecond, and not with the whole seconds of the server's own timeouts.
func TestWaits(t *testing.T) {
	of := setup(t)
	for _, name := range []string{"mysql-get-lock", "mysql-row"} {
		t.Run(name, func(t *testing.T) {
			a, b := open(t, name, of(0)), open(t, name, of(1))
			if err := acquire(t, a, "waits", "alice", 0); err != nil {
				t.Fatal(err)
			}
			for _, wait := range []time.Duration{100 * time.Millisecond, 1300 * time.Millisecond} {
				shortest := time.Hour // of several: without the delays of a busy machine
				for range 5 {
					began := time.Now()
					if err := acquire(t, b, "waits", "bob", wait); !errors.Is(err, lock.ErrHeld) {
						t.Fatalf("bob waits %v and gets %v, want ErrHeld", wait, err)
					}
					took := time.Since(began)
					shortest = min(shortest, took)
					if took < wait-10*time.Millisecond {
						t.Errorf("a wait of %v ends after %v", wait, took)
					}
				}
				if shortest > wait+500*time.Millisecond {
					t.Errorf("waits of %v end after %v or more", wait, shortest)
				}
			}
		})
	}
}

// TestStoppedWaiter: the witness shows the new holder although its client gets no reply and sends nothing after the
// grant, as a client that was stopped in its wait.
func TestStoppedWaiter(t *testing.T) {
	c := start(t)
	for _, name := range []string{"mysql-get-lock", "mysql-row"} {
		t.Run(name, func(t *testing.T) {
			a := open(t, name, client.Setup{Endpoints: c.Endpoints(0)})
			b := open(t, name, client.Setup{Endpoints: c.Endpoints(1)})
			if err := acquire(t, a, name, "alice", 0); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- acquire(t, b, name, "bob", time.Minute) }()
			config, err := configure(client.Setup{Endpoints: c.Endpoints(2)})
			if err != nil {
				t.Fatal(err)
			}
			observer, err := connect(t.Context(), config, "")
			if err != nil {
				t.Fatal(err)
			}
			defer observer.End()
			locktest.Eventually(t, time.Minute, "bob waits", func() (waits bool) {
				err := observer.QueryRowContext(t.Context(), `SELECT count(*) > 0 FROM information_schema.processlist
					WHERE id <> connection_id() AND (info LIKE '%FOR UPDATE%' OR info LIKE '%GET_LOCK%')`).Scan(&waits)
				return err == nil && waits
			})
			link := cluster.Link{From: cluster.ClientName(1), To: cluster.Any}
			if err := c.SetRule(link, cluster.Both, cluster.Rule{Mode: cluster.Hold}); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Release(t.Context(), client.Hold{Key: name, Owner: "alice"}); err != nil {
				t.Fatal(err)
			}
			locktest.Eventually(t, time.Minute, "the witness shows bob", func() bool {
				return c.Sample(t.Context(), "n1", []string{name}).Keys[name].Owner == "bob"
			})
			if err := c.SetRule(link, cluster.Both, cluster.Rule{}); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNames: locks with long names, and with names that differ in their case or their last space, are different locks.
func TestNames(t *testing.T) {
	of := setup(t)
	long := strings.Repeat("ä", 300)
	for _, name := range []string{"mysql-get-lock", "mysql-row", "sql-unique", "sql-lease"} {
		t.Run(name, func(t *testing.T) {
			l := open(t, name, of(0))
			for _, key := range []string{long, long + "1", "key", "KEY", "key ", "k\\'\"?:name"} {
				key = name + key
				if err := acquire(t, l, key, "alice", 0); err != nil {
					t.Errorf("lock %q: %v", key, err)
				}
				if err := acquire(t, l, key, "bob", 0); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("lock %q has a second holder: %v", key, err)
				}
			}
		})
	}
}

// TestFirstUse: clients that use a row at the same time, which none of them has used before, do not fail, and one of
// them gets it.
func TestFirstUse(t *testing.T) {
	of := setup(t)
	for round := range 20 {
		var (
			key   = fmt.Sprint("new ", round)
			all   sync.WaitGroup
			mu    sync.Mutex
			count int
		)
		for n := range 4 {
			l := open(t, "mysql-row", of(n))
			all.Go(func() {
				err := acquire(t, l, key, "a client", 0)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					count++
				} else if !errors.Is(err, lock.ErrHeld) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if count != 1 {
			t.Fatalf("%d of 4 clients got the lock", count)
		}
	}
}

// TestStatements: the effect of a statement is exact, also if it changes nothing because it has the same end as before.
func TestStatements(t *testing.T) {
	config, err := configure(setup(t)(0))
	if err != nil {
		t.Fatal(err)
	}
	c, err := connect(t.Context(), config, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.End() }()
	at := func(second int) {
		t.Helper()
		if _, err := c.ExecContext(t.Context(), fmt.Sprintf("SET timestamp = 2000000000.5 + %d", second)); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		second int
		do     database.Action
		owner  string
		lease  time.Duration
		token  uint64 // 0: it has no effect
	}{
		{0, database.Acquire, "alice", 10 * time.Second, 1},
		{0, database.Acquire, "alice", 10 * time.Second, 0}, // the same end
		{0, database.Renew, "alice", 10 * time.Second, 1},   // the same end
		{0, database.Renew, "bob", 10 * time.Second, 0},
		{0, database.Release, "bob", 0, 0},
		{9, database.Acquire, "bob", time.Second, 0}, // the end of alice
		{10, database.Release, "alice", 0, 0},
		{10, database.Acquire, "bob", time.Second, 2},
		{10, database.Renew, "alice", time.Second, 0},
		{10, database.Release, "bob", 0, 2},
		{10, database.Release, "bob", 0, 0},
		{5, database.Acquire, "alice", time.Second, 3}, // the clock has gone back
	} {
		at(step.second)
		token, err := rowSession{c, leasedRow()}.Execute(t.Context(), step.do,
			database.Row{Name: "statements", Owner: step.owner, Lease: step.lease})
		if step.do == database.Release && err == nil {
			token = step.token // it has no need of one
		}
		if token != step.token || (step.token > 0) != (err == nil) || err != nil && !errors.Is(err, database.ErrNoEffect) {
			t.Errorf("%+v: token %d, %v", step, token, err)
		}
	}
}
