package session_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/workloadtest"
	"github.com/lockchaos/lockchaos/workloads/session"
)

// TestSessionWatchesValidity: a hold of a lock that reports no loss is recorded as lost when its promise ends, with
// that time; it is not renewed after that. A renewed hold is lost later, and a released one is not.
func TestSessionWatchesValidity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		c.Script = func(_ int, r client.Request) (*client.Reply, error) {
			<-time.After(time.Millisecond) // the network
			return &client.Reply{Type: "ok", ValidMS: float64(r.Lease.Milliseconds())}, nil
		}
		s := session.New(c, tape, 0, 1, client.MonotonicNow)
		s.WatchValidity()
		acquire := func(owner string) session.Hold {
			h, _ := s.Acquire(t.Context(), client.Acquire{Key: "k", Owner: owner, Lease: time.Second})
			return h
		}
		left, renewed, released := acquire("left"), acquire("renewed"), acquire("released")
		if !s.KnowsLosses() {
			t.Error("it knows no losses, although each hold has a validity")
		}
		s.Renew(t.Context(), renewed, 3*time.Second)
		s.Release(t.Context(), released)
		<-time.After(2 * time.Second)
		asked := len(c.Requests)
		if a := s.Renew(t.Context(), left, time.Second); a.Outcome != history.Fail || len(c.Requests) != asked {
			t.Errorf("renewed after the end: %+v", a)
		}
		s.AwaitEnds(t.Context())
		var lost []string
		for _, e := range tape.Events {
			if e.F == history.Lost {
				lost = append(lost, fmt.Sprint(e.Value.Owner, " ", e.Value.Age.Round(10*time.Millisecond)))
			}
		}
		if diff := cmp.Diff([]string{"left 1.01s", "renewed 0s"}, lost); diff != "" {
			t.Errorf("losses (-want +got):\n%s", diff)
		}
	})
}

// TestSessionWatchesValidityOfModes: an owner's read hold and its write hold have validities of their own.
func TestSessionWatchesValidityOfModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		c.Script = func(_ int, r client.Request) (*client.Reply, error) {
			<-time.After(time.Millisecond) // the network
			return &client.Reply{Type: "ok", ValidMS: float64(r.Lease.Milliseconds())}, nil
		}
		s := session.New(c, tape, 0, 1, client.MonotonicNow)
		s.WatchValidity()
		s.Acquire(t.Context(), client.Acquire{Key: "k", Owner: "a", Mode: "read", Lease: time.Second})
		s.Acquire(t.Context(), client.Acquire{Key: "k", Owner: "a", Mode: "write", Lease: 3 * time.Second})
		<-time.After(2 * time.Second)
		var lost []string
		s.Inspect(t.Context(), "k")
		for _, e := range tape.Events {
			if e.F == history.Lost {
				lost = append(lost, e.Value.Mode)
			}
		}
		if diff := cmp.Diff([]string{"read"}, lost); diff != "" {
			t.Errorf("losses (-want +got):\n%s", diff)
		}
	})
}

// TestSessionWithoutPromises: a lock that promises no validity loses nothing that a session could know.
func TestSessionWithoutPromises(t *testing.T) {
	tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
	s := session.New(c, tape, 0, 1, client.MonotonicNow)
	s.WatchValidity()
	c.Script = func(int, client.Request) (*client.Reply, error) { return &client.Reply{Type: "ok"}, nil }
	s.Acquire(t.Context(), client.Acquire{Key: "k", Lease: time.Nanosecond, Wait: time.Second})
	if s.AwaitEnds(t.Context()); s.KnowsLosses() || len(tape.Events) != 2 {
		t.Errorf("%+v", tape.Events)
	}
}
