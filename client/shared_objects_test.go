package client

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// TestInstancesAreShared: clients that name the same instance have one lock, notices go to the client whose owner they
// are about, and the last client closes the lock.
func TestInstancesAreShared(t *testing.T) {
	var opened []*stubLocker
	row := SharesInstances(Spec{Open: func(Setup, func(Reply)) (Locker, error) {
		opened = append(opened, &stubLocker{})
		return opened[len(opened)-1], nil
	}})
	heard := map[string][]string{}
	open := func(client, instance string) Locker {
		l, err := row.Open(Setup{Instance: instance}, func(r Reply) { heard[client] = append(heard[client], r.Owner) })
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	alone := open("alone", "")
	a, b, other := open("a", "1"), open("b", "1"), open("other", "2")
	if len(opened) != 3 {
		t.Fatalf("%d locks were opened for three instances", len(opened))
	}
	if _, is := alone.(*stubLocker); !is {
		t.Errorf("a client without an instance has a %T", alone)
	}
	last := open("last", "1")
	for client, l := range map[string]Locker{"a": a, "b": b} {
		if _, err := l.Acquire(t.Context(), Acquire{Owner: "owner-" + client}); err != nil {
			t.Fatal(err)
		}
	}
	_ = other.Close(context.Background())
	for n, l := range []Locker{a, b} {
		if err := l.Close(t.Context()); err != nil || opened[1].closed != 0 {
			t.Errorf("close %d: %v, the lock was closed %d times", n, err, opened[1].closed)
		}
	}
	if err := last.Close(t.Context()); err != nil || opened[1].closed != 1 {
		t.Errorf("the last close: %v, the lock was closed %d times", err, opened[1].closed)
	}
	if opened[2].closed != 1 {
		t.Errorf("an instance was closed %d times by its only client", opened[2].closed)
	}
	i := a.(*member).instance
	for _, owner := range []string{"owner-b", "owner-a", "unknown"} {
		i.notify(Reply{Owner: owner})
	}
	if !slices.Equal(heard["a"], []string{"owner-a", "unknown"}) || !slices.Equal(heard["b"], []string{"owner-b"}) {
		t.Errorf("notices went to %v", heard)
	}
}

// TestInstanceIsOpenedWithoutTheMutex: a lock that connects waits for replies; in a simulation, another client that
// waits for a mutex meanwhile would stall virtual time. An instance that cannot be opened is opened again by the next.
func TestInstanceIsOpenedWithoutTheMutex(t *testing.T) {
	all := &instances{named: map[string]*instance{}}
	failure := errors.New("no server")
	for range 2 {
		opened := false
		_, err := all.open(Setup{Instance: "1"}, nil, func(Setup, func(Reply)) (Locker, error) {
			if opened = all.mu.TryLock(); opened {
				all.mu.Unlock()
			}
			return nil, failure
		})
		if !opened || !errors.Is(err, failure) || len(all.named) != 0 {
			t.Errorf("opened without the mutex: %v; %v; %d instances are left", opened, err, len(all.named))
		}
	}
}
