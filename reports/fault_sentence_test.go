package reports

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// TestFaultWithoutClass: the report of a history without classes and verbs, as of earlier versions, names the faults,
// and blames none for effects that only their kind would explain.
func TestFaultWithoutClass(t *testing.T) {
	s := failoverRun("orders")
	for _, e := range s.events {
		if e.Value != nil && e.Value.Fault != nil {
			e.Value.Fault.Class, e.Value.Fault.Object, e.Value.Fault.Verb = "", "", ""
		}
	}
	r := s.load(t)
	steps := fmt.Sprint(r.Story.Steps)
	for _, want := range []string{"n1 was hit by fault `replication-hold`", "n1 was hit by fault `kill`"} {
		if !strings.Contains(steps, want) {
			t.Errorf("no step %q in %s", want, steps)
		}
	}
	if text := r.Story.Sentence; r.Story.Cause != "lost-in-failover" || strings.Contains(text, "kept from") {
		t.Errorf("cause %s: %s", r.Story.Cause, text)
	}
}

// TestFailoverOfDatabase: the report of a failover of PostgreSQL advises about commits, and if the lock is that of a
// session, it says that such locks are not replicated.
func TestFailoverOfDatabase(t *testing.T) {
	for can, want := range map[promise.Set]string{
		promise.KeepsGrants: "before its write was seen on any other node",
		promise.Unleased:    "and locks of sessions are not replicated",
	} {
		s := failoverRun("orders")
		s.m.Topology, s.m.Can = cluster.Topology{Kind: cluster.Postgres, Replicas: 1}, can
		s.events = slices.DeleteFunc(s.events, func(e history.Event) bool {
			return e.Value != nil && e.Value.Fault != nil && e.Value.Fault.ID == 1 // replication-hold
		})
		r := s.load(t)
		if text := r.Story.Sentence; r.Story.Cause != "lost-in-failover" || !strings.Contains(text, want) {
			t.Errorf("cause %s: %s, want %q", r.Story.Cause, text, want)
		}
		advice := fmt.Sprint(r.Story.Advice)
		if !strings.Contains(advice, "synchronous_standby_names") || strings.Contains(advice, "WAIT") {
			t.Errorf("advice for a database: %s", advice)
		}
	}
}

// TestWriteNamesNewerToken: a write names the highest token that the resource had seen only if that is a newer one.
func TestWriteNamesNewerToken(t *testing.T) {
	r := &evidence.Run{History: &history.History{Clients: 3, Keys: []string{"orders"}}}
	for seen, want := range map[uint64]string{0: "", 5: "", 7: " (highest seen: 7)"} {
		got := r.TouchText(&history.Touched{TouchValue: history.TouchValue{MaxSeen: seen}, Process: 1, Token: 5,
			Accepted: true})
		if want = "client 1 writes to the resource guarded by `orders` with token 5" + want; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestFaultSentenceKeptLock: after the client stopped relying on the lock, the server may still have it: a fault then
// did not come while nobody held it.
func TestFaultSentenceKeptLock(t *testing.T) {
	for want, keptUntil := range map[string]float64{
		"`kill` took effect once while a server stored the lock": 200,
		"`kill` took effect once, never while the lock was held": 90,
	} {
		s := newSynth("crash", "orders", 1, cluster.Topology{Kind: cluster.Single}, 1)
		s.hold(0, "own-0-aaaa", 0, holdTimes{requested: 10, from: 11, to: 80, valid: 200})
		s.watch("n1", "master", 0, 300, owned("own-0-aaaa", 10, keptUntil, 300))
		for _, phase := range []history.Phase{history.Injected, history.TookEffect} {
			s.fault(150, "kill", history.FaultValue{ID: 1, Phase: phase, Target: "client:0"})
		}
		s.number()
		s.j.Verdict = checker.Safe
		if got := s.load(t).Story.Sentence; !strings.HasPrefix(got, want+"; 1 grant") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
