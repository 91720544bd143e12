package locks

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/promise"
)

// TestScopes: a hold of a block of code ends with it, whether it succeeds, fails or panics, and a loss is reported.
func TestScopes(t *testing.T) {
	server := locktest.StartServer(t)
	for _, row := range slices.Concat([]client.Spec{reentrantSpec()}, kindSpecs()) {
		if !row.Can.Has(promise.HasDo) {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			server.Dial(t).FlushAll(t.Context())
			n, _ := onServer(t, row, server.Addr, 1, nil)
			other, _ := onServer(t, row, server.Addr, 2, nil)
			do := func(n *testClient, r client.Request) client.Reply {
				r.ID, r.Key, r.Lease = 2, "k", time.Minute
				return n.handle(t.Context(), r)
			}
			for _, owner := range []string{"o1", "o2", "o3", "o4"} {
				block := client.Acquire{Owner: owner, Wait: 20 * time.Second, Scoped: true}
				r := do(n, client.Request{Op: history.Acquire, Acquire: block})
				if r.Type != "ok" || (r.Token > 0) != row.Can.Has(promise.Fenced) || r.Count != 1 || r.ValidMS != 0 {
					t.Fatalf("acquire: %+v", r)
				}
				if r := do(other, client.Request{Op: history.Try, Acquire: client.Acquire{Owner: "x"}}); r.Code != history.CodeHeld {
					t.Errorf("try of another owner: %+v", r)
				}
				r = do(n, client.Request{Op: history.Release, Acquire: client.Acquire{Owner: owner}, Failed: owner != "o1"})
				if r.Type != "ok" || r.Count != 0 {
					t.Errorf("release: %+v", r)
				}
				if r := do(n, client.Request{Op: history.Release, Acquire: client.Acquire{Owner: owner}}); r.Code != "not-held" {
					t.Errorf("second release: %+v", r)
				}
			}
			do(n, client.Request{Op: history.Acquire, Acquire: client.Acquire{Owner: "o5", Wait: 20 * time.Second, Scoped: true}})
			do(other, client.Request{Op: history.ForceRelease})
			if r := do(n, client.Request{Op: history.Release, Acquire: client.Acquire{Owner: "o5"}}); r.Code != "lost" {
				t.Errorf("release of a lock that was taken away: %+v", r)
			}
		})
	}
}

// TestContradictions: a client sees that an answer of package lock does not agree with another one.
func TestContradictions(t *testing.T) {
	server := locktest.StartServer(t)
	for name, tamper := range map[string]func(l *library){
		"":         func(*library) {},
		"no event": func(l *library) { l.events.list = nil },
		"another token": func(l *library) {
			for id := range l.events.list { // there is one
				l.events.list[id][0].Token++
			}
		},
		"a lease that ends early": func(l *library) { l.lease = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			server.Dial(t).FlushAll(t.Context())
			n, _ := onServer(t, reentrantSpec(), server.Addr, 1, nil)
			l := n.locker.(*library)
			a, asked := client.Acquire{Key: "k", Owner: "o"}, time.Now()
			h, owner, err := l.acquireHeld(t.Context(), a, false)
			if err != nil {
				t.Fatal(err)
			}
			tamper(l)
			if err := l.checkGrant(h, a, owner, asked); errors.Is(err, client.ErrContradiction) != (name != "") {
				t.Errorf("grant: %v", err)
			}
			released := h.Release(t.Context())
			if name == "no event" {
				l.events.list = nil
			}
			wrong := l.checkReleased(h, released)
			if errors.Is(wrong, client.ErrContradiction) != (name == "no event") {
				t.Errorf("release: %v", wrong)
			}
		})
	}
}

// TestContradictionsOfPermits: a client sees that permits do not agree with the request or with their event.
func TestContradictionsOfPermits(t *testing.T) {
	row := specNamed(t, "permits")
	server := locktest.StartServer(t)
	for name, tamper := range map[string]func(e *lock.Event){
		"":                 func(*lock.Event) {},
		"of other permits": func(e *lock.Event) { e.Owner = "" },
		"another number":   func(e *lock.Event) { e.Permits++ },
		"took too long":    func(e *lock.Event) { e.Took = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			server.Dial(t).FlushAll(t.Context())
			n, _ := onServer(t, row, server.Addr, 1, nil)
			l := n.locker.(*library)
			a, asked := client.Acquire{Key: "k", Owner: "o", Permits: 2, Limit: 3}, time.Now()
			h, owner, err := l.acquireHeld(t.Context(), a, false)
			if err != nil {
				t.Fatal(err)
			}
			seen := l.events.list
			l.events.list = nil
			for _, list := range seen {
				for _, e := range list {
					tamper(&e)
					l.events.observe(e)
				}
			}
			if err := l.checkGrant(h, a, owner, asked); errors.Is(err, client.ErrContradiction) != (name != "") {
				t.Errorf("grant: %v", err)
			}
			if err := l.checkReleased(h, h.Release(t.Context())); err != nil {
				t.Errorf("release: %v", err)
			}
			if err := l.checkReleased(h, nil); !errors.Is(err, client.ErrContradiction) {
				t.Errorf("a release without an event: got %v, want a contradiction", err)
			}
		})
	}
}

// TestEndOfWait: the error of a wait that has ended says so.
func TestEndOfWait(t *testing.T) {
	owner := "o"
	for formOf(owner) == limitedForm {
		owner += "o"
	}
	waits, end := client.Acquire{Owner: owner, Wait: time.Second}, context.DeadlineExceeded
	for _, row := range []struct {
		a     client.Acquire
		err   error
		also  bool
		wrong bool
	}{
		{waits, lock.ErrHeld, false, true},
		{waits, lock.ErrNoPermits, false, true},
		{waits, lock.ErrHeld, true, false},
		{waits, errors.Join(lock.ErrHeld, end), false, false},
		{waits, errors.Join(lock.ErrHeld, lock.ErrClosed), false, false},
		{waits, lock.ErrForeign, false, false},
		{waits, nil, false, false},
		{client.Acquire{Owner: owner}, lock.ErrHeld, false, false},
	} {
		if err := checkEnd(row.a, row.err, row.also); errors.Is(err, client.ErrContradiction) != row.wrong {
			t.Errorf("%+v: got %v, want a contradiction: %v", row, err, row.wrong)
		}
	}
}

// TestMarkedHolds: a hold whose owner is named by its metadata alone is shown with them.
func TestMarkedHolds(t *testing.T) {
	server := locktest.StartServer(t)
	n, _ := onServer(t, specNamed(t, "mutex"), server.Addr, 1, nil)
	l := n.locker.(*library)
	l.contexts = true
	owner := "o"
	for !l.marks(owner) {
		owner += "o"
	}
	if _, err := l.Acquire(t.Context(), client.Acquire{Key: "k", Owner: owner, Wait: time.Second}); err != nil {
		t.Fatal(err)
	}
	if g, err := l.inspection(t.Context(), "k"); g.Owner != owner || err != nil {
		t.Errorf("inspect: %q, %v, want %q", g.Owner, err, owner)
	}
	other, _ := onServer(t, specNamed(t, "mutex"), server.Addr, 2, nil)
	if g, err := other.locker.(*library).inspection(t.Context(), "k"); g.Owner != owner || err != nil {
		t.Errorf("inspect by another client: %q, %v, want %q", g.Owner, err, owner)
	}
	server.Dial(t).HDel(t.Context(), "k", "metadata")
	if _, err := l.inspection(t.Context(), "k"); !errors.Is(err, client.ErrContradiction) {
		t.Errorf("inspect without metadata: got %v, want a contradiction", err)
	}
}

// specNamed is the row of a lock.
func specNamed(t *testing.T, name string) client.Spec {
	t.Helper()
	row, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// canceledHold is a hold whose context has ended.
type canceledHold struct{ held }

func (canceledHold) Context() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestContextOfHold: a hold that lasts must have a context that lasts.
func TestContextOfHold(t *testing.T) {
	server := locktest.StartServer(t)
	n, _ := onServer(t, reentrantSpec(), server.Addr, 1, nil)
	l := n.locker.(*library)
	l.contexts = true
	owner := "o"
	for !isEven(owner) {
		owner += "o"
	}
	h, _, err := l.acquireHeld(t.Context(), client.Acquire{Key: "k", Owner: owner, Wait: time.Second}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.checkContext(h, owner); err != nil {
		t.Errorf("a hold that lasts: %v", err)
	}
	if err := l.checkContext(canceledHold{h}, owner); !errors.Is(err, client.ErrContradiction) {
		t.Errorf("a hold with an ended context: got %v, want a contradiction", err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.checkContext(canceledHold{h}, owner); err != nil {
		t.Errorf("a hold that was released: %v", err)
	}
}

// TestInnerMetadata: the metadata of a lock are from the first hold of its owner.
func TestInnerMetadata(t *testing.T) {
	l := &library{holds: newHolds()}
	for range 2 {
		l.holds.add(native.HoldID{Key: "k", Owner: "o"}, &scope{})
	}
	for _, row := range []struct {
		metadata string
		count    int
		wrong    bool
	}{{"o", 2, false}, {"o" + again, 2, true}, {"o" + again, 1, false}, {"x" + again, 2, false}} {
		_, err := l.labeledOwner("k", lock.State{Metadata: row.metadata, Count: row.count})
		if errors.Is(err, client.ErrContradiction) != row.wrong {
			t.Errorf("%q with %d holds: %v", row.metadata, row.count, err)
		}
	}
}

// TestScopeEnds: the result or panic of a function has to come out of Do.
func TestScopeEnds(t *testing.T) {
	lost := errors.New("lost")
	for _, row := range []struct {
		name  string
		why   error // the function ends with that
		do    func(work func() error) error
		want  error
		wrong bool
	}{
		{"released", nil, func(work func() error) error { return work() }, nil, false},
		{"lost", nil, func(work func() error) error { return errors.Join(work(), lost) }, lost, false},
		{"failed", errScopeEnd, func(work func() error) error { return work() }, nil, false},
		{"failed and lost", errScopeEnd, func(work func() error) error { return errors.Join(work(), lost) }, lost, false},
		{"failure hidden", errScopeEnd, func(work func() error) error { _ = work(); return nil }, nil, true},
		{"panic", errScopePanic, func(work func() error) error { return work() }, errScopePanic, false},
		{"panic hidden", errScopePanic, func(work func() error) error {
			defer func() { _ = recover() }()
			return work()
		}, nil, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			do := func(ctx context.Context, work func(context.Context, int64) error, _ ...lock.Option) error {
				return row.do(func() error { return work(ctx, 1) })
			}
			h, err := enter(t.Context(), do, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = h.(*scope).end(row.why)
			if errors.Is(err, client.ErrContradiction) != row.wrong || !row.wrong && !errors.Is(err, row.want) {
				t.Errorf("got %v, want %v, or a contradiction: %v", err, row.want, row.wrong)
			}
		})
	}
	never := func(context.Context, func(context.Context, int64) error, ...lock.Option) error { return nil }
	if _, err := enter(t.Context(), never, nil); !errors.Is(err, client.ErrContradiction) {
		t.Errorf("a function that is not called: %v", err)
	}
}
