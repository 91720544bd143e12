package reports

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// What a busy machine adds to a run: samples without a reply, replies that come too late, notices that are recorded
// late. Each of these runs was seen on real servers.

// TestSilentNode: a node that did not reply to a sample has restarted only if nothing else explains that the key is
// gone.
func TestSilentNode(t *testing.T) {
	for name, test := range map[string]struct{ fault, detail, cause string }{
		"evicted":          {"eviction", "n1 has evicted the key", "key-removed"},
		"clock set ahead":  {"clock-jump", "the clock of n1 is 60.00 s ahead of true time", "expired-early"},
		"no other fault":   {"latency", "78 bytes delayed", "forgotten-in-restart"},
		"it was restarted": {"restart-empty", "n1 exited", "forgotten-in-restart"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSynth("silent", "orders", 2, cluster.Topology{Kind: cluster.Single}, 1)
			s.hold(0, "c0-1", 0, holdTimes{10, 270, 2780, 9900})
			s.hold(1, "c1-1", 0, holdTimes{20, 1555, 3000, 9900})
			s.fault(890, test.fault, history.FaultValue{ID: 1, Phase: history.Injected, Target: "n1"})
			s.fault(900, test.fault, history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "n1", Detail: test.detail})
			s.watch("n1", "master", 0, 890, owned("c0-1", 260, 890, 10000))
			s.watch("n1", "", 1004, 1005, noHolder)
			s.watch("n1", "master", 1024, 3100, owned("c1-1", 1550, 3000, 10000))
			s.number()
			s.overlap(checker.BrokenPromise, 0, 1, 1555, 2780)
			r := s.load(t)
			if r.Story.Cause != test.cause {
				t.Errorf("cause %s, want %s: %s", r.Story.Cause, test.cause, r.Story.Sentence)
			}
			checkProofs(t, r)
		})
	}
}

// overlap is the judgement of a run whose clients a and b, in the order of their grants, held the lock at once.
func (s *synth) overlap(class checker.Class, a, b int, from, to float64) {
	s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.Exclusion,
		Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Class: class, Key: s.key,
			Clients: []int{a, b}, Start: ms(from), End: ms(to), Events: []int{
				s.find(history.OK, history.Process(a), history.Acquire, ""),
				s.find(history.OK, history.Process(b), history.Acquire, "")}}}}}}
}

// TestLossIsRecordedLate: a hold ends when its client learns of the loss, which is recorded later.
func TestLossIsRecordedLate(t *testing.T) {
	s := newSynth("fenced-pause", "orders", 2, cluster.Topology{Kind: cluster.Single}, 1)
	s.add(10, history.Invoke, 0, history.Acquire, &history.Value{Owner: "c0-1"})
	s.add(880, history.OK, 0, history.Acquire, &history.Value{Owner: "c0-1", Token: 1, Valid: ms(1470), Count: 1})
	s.add(4363, history.Info, 0, history.Lost, &history.Value{Owner: "c0-1", Age: ms(131)})
	s.fault(1000, "pause-client", history.FaultValue{ID: 1, Phase: history.Injected, Target: "client:0"})
	s.fault(1215, "pause-client", history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "client:0"})
	s.fault(4238, "pause-client", history.FaultValue{ID: 1, Phase: history.Healed, Target: "client:0"})
	s.hold(1, "c1-1", 2, holdTimes{20, 3680, 4352, 1470})
	s.watch("n1", "master", 0, 4400, owned("c1-1", 3670, 4352, 1500))
	s.number()
	s.overlap(checker.OutlivedLease, 0, 1, 3680, 4232)
	r := s.load(t)
	const want = "Client 0 and client 1 both held `orders` for 552 ms: "
	if r.Story.Cause != "stalled-holder" || !strings.HasPrefix(r.Story.Sentence, want) {
		t.Errorf("cause %s: %s", r.Story.Cause, r.Story.Sentence)
	}
	checkProofs(t, r)
}

// TestTokenOfAPromotedReplica: the holds did not overlap, but the second has an older token, because its server had
// replaced the first one, or had restarted without its data.
func TestTokenOfAPromotedReplica(t *testing.T) {
	for name, test := range map[string]struct {
		token uint64 // of the second grant
		by    string // the server of the second grant
		cause string
	}{
		"older token of another server": {40, "n2", "lost-in-failover"},
		"newer token of another server": {60, "n2", "fault-between"},
		"older token of the same one":   {40, "n1", "forgotten-in-restart"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSynth("token-failover", "orders", 2, cluster.Topology{Kind: cluster.Sentinel, Replicas: 1, Sentinels: 3}, 2)
			s.hold(0, "c0-1", 50, holdTimes{10, 203, 3251, 9900})
			s.hold(1, "c1-1", test.token, holdTimes{2984, 3634, 6900, 9900})
			s.fault(255, "kill", history.FaultValue{ID: 1, Phase: history.Injected, Target: "n1"})
			s.fault(277, "kill", history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "n1", Detail: "process exited"})
			s.watch("n1", "master", 0, 277, owned("c0-1", 200, 10000, 10000))
			if test.by == "n2" {
				s.watch("n1", "", 280, 7000, noHolder)
				s.watch("n2", "slave", 0, 1162, noHolder)
				s.watch("n2", "master", 1162, 7000, owned("c1-1", 3600, 6900, 10000))
			} else {
				s.watch("n1", "master", 280, 7000, owned("c1-1", 3600, 6900, 10000))
			}
			s.number()
			events := []int{s.find(history.OK, 0, history.Acquire, ""), s.find(history.OK, 1, history.Acquire, "")}
			s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.Fencing,
				Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Key: "orders", Clients: []int{0, 1},
					Text: "client 1 got an older token", Start: ms(3634), End: ms(3634), Events: events}}}}}
			r := s.load(t)
			if r.Story.Cause != test.cause {
				t.Errorf("cause %s, want %s: %s", r.Story.Cause, test.cause, r.Story.Sentence)
			}
			want := map[string]string{
				"lost-in-failover": "Client 0 was granted `orders` with token 50, and later client 1 with token 40: n1 granted it " +
					"to client 0 at 0.203 s and was killed at 0.277 s (`kill`), before its write was seen on any other node; n2 " +
					"was seen as master from 1.162 s and granted it to client 1 at 3.634 s",
				"forgotten-in-restart": "Client 0 was granted `orders` with token 50, and later client 1 with token 40: n1 granted " +
					"it to client 0 at 0.203 s, was killed at 0.277 s (`kill`), replied without the key and granted it to client 1 at " +
					"3.634 s",
			}[test.cause]
			if want == "" {
				return
			}
			if r.Story.Sentence != want {
				t.Error(r.Story.Sentence)
			}
			checkProofs(t, r)
		})
	}
}

// TestUnansweredAcquireWithoutLease: the key of an acquire without a reply stays if it has no expiry.
func TestUnansweredAcquireWithoutLease(t *testing.T) {
	for name, test := range map[string]struct {
		ttl   float64
		cause string
	}{"no expiry": {-1, "no-lease"}, "with an expiry": {3000, "unknown"}} {
		t.Run(name, func(t *testing.T) {
			s := newSynth("setnx-crash", "orders", 2, cluster.Topology{Kind: cluster.Single}, 1)
			s.hold(1, "c1-1", 0, holdTimes{10, 20, 900, 0})
			s.add(1000, history.Invoke, 0, history.Acquire, &history.Value{Owner: "c0-1"})
			s.add(2000, history.Info, 0, history.Acquire, nil)
			s.watch("n1", "master", 0, 4000, func(t float64) (string, float64) {
				if t < 1100 {
					return "", 0
				}
				return "c0-1", test.ttl
			})
			s.number()
			s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.Leak,
				Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Key: "orders", Text: "left behind",
					Start: ms(2000), End: ms(3900), Events: []int{s.find(history.Invoke, 0, history.Acquire, "")}}}}}}
			r := s.load(t)
			if r.Story.Cause != test.cause {
				t.Errorf("cause %s, want %s: %s", r.Story.Cause, test.cause, r.Story.Sentence)
			}
			const want = "Client 0 asked for `orders` at 1.000 s, with an unknown outcome, and the key has no expiry: n1 " +
				"still had it at 3.900 s"
			if test.cause == "no-lease" && r.Story.Sentence != want {
				t.Error(r.Story.Sentence)
			}
		})
	}
}

// TestUnplannedWithoutFault: a promotion before the fault, and a grant after the end of its validity, are not the work
// of a fault that had not begun or hit another client.
func TestUnplannedWithoutFault(t *testing.T) {
	crash := func(s *synth, client string) {
		s.fault(100, "client-crash", history.FaultValue{ID: 3, Phase: history.Injected, Target: client})
		s.fault(110, "client-crash", history.FaultValue{ID: 3, Phase: history.TookEffect, Target: client})
	}
	run := func(valid float64, topology cluster.Topology) *synth {
		s := newSynth("busy", "orders", 3, topology, 1)
		s.hold(0, "c0-1", 0, holdTimes{10, 2100, 2600, valid})
		s.hold(1, "c1-1", 0, holdTimes{20, 2200, 2500, 1900})
		s.watch("n1", "master", 0, 2700, owned("c1-1", 2150, 2600, 2000))
		return s
	}
	for name, test := range map[string]struct {
		make func() *synth
		want string
	}{
		"granted too late": {func() *synth {
			s := run(-100, cluster.Topology{Kind: cluster.Single})
			crash(s, "client:2")
			return s
		}, "after the end of its validity"},
		"granted too late, by a fault": {func() *synth {
			s := run(-100, cluster.Topology{Kind: cluster.Single})
			crash(s, "client:0")
			return s
		}, ""},
		"promoted before": {func() *synth {
			s := run(1900, cluster.Topology{Kind: cluster.Sentinel, Sentinels: 3})
			s.fault(90, history.NodePromoted, history.FaultValue{Phase: history.Noted, Target: "n1"})
			crash(s, "client:2")
			return s
		}, "n1 was promoted at 90ms, before client-crash"},
		"promoted after": {func() *synth {
			s := run(1900, cluster.Topology{Kind: cluster.Sentinel, Sentinels: 3})
			s.fault(190, history.NodePromoted, history.FaultValue{Phase: history.Noted, Target: "n1"})
			crash(s, "client:2")
			return s
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.make()
			s.number()
			s.overlap(checker.BrokenPromise, 0, 1, 2200, 2500)
			if got := unplanned(s.load(t)); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestUnplanned: a violation that was complete before a fault could have caused it is not the planned one.
func TestUnplanned(t *testing.T) {
	for name, test := range map[string]struct {
		injected, effect float64
		want             string
	}{
		"in effect before":  {100, 200, ""},
		"injected after":    {2300, 2400, "before kill was injected"},
		"effect came after": {2100, 2300, "before kill had an effect"},
		"no effect":         {100, 0, "before kill had an effect"},
	} {
		t.Run(name, func(t *testing.T) {
			s := twoGrantsRun(func(s *synth) {
				s.fault(test.injected, "kill", history.FaultValue{ID: 3, Phase: history.Injected, Target: "n1"})
				if test.effect > 0 {
					s.fault(test.effect, "kill", history.FaultValue{ID: 3, Phase: history.TookEffect, Target: "n1"})
				}
			}, [2]float64{20, 30})
			if got := unplanned(s.load(t)); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestCauseOfDeletedNode: the deletion is the cause even if no sample shows which member granted the lock to the first
// holder. ZooKeeper and etcd have no FLUSHALL and evict nothing: there is no advice on them.
func TestCauseOfDeletedNode(t *testing.T) {
	for _, test := range []struct {
		kind, entry, on string
		seen            bool
	}{
		{cluster.ZooKeeper, "node", "n1", true}, {cluster.ZooKeeper, "node", "n2", true},
		{cluster.ZooKeeper, "node", "n1", false}, {cluster.Etcd, "key", "n1", false},
	} {
		s := newSynth("deleted", "orders", 2, cluster.Topology{Kind: test.kind, Members: 3}, 3)
		s.hold(0, "c0-1", 0, holdTimes{10, 270, 2780, 9900})
		s.hold(1, "c1-1", 0, holdTimes{20, 1555, 3000, 9900})
		s.fault(890, "node-deleted", history.FaultValue{ID: 1, Phase: history.Injected, Target: test.on})
		s.fault(900, "node-deleted", history.FaultValue{ID: 1, Phase: history.TookEffect, Target: test.on,
			Detail: "1 holder deleted"})
		if test.seen {
			s.watch("n1", "master", 0, 890, owned("c0-1", 260, 890, 10000))
		}
		s.watch("n1", "master", 1024, 3100, owned("c1-1", 1550, 3000, 10000))
		s.number()
		s.overlap(checker.BrokenPromise, 0, 1, 1555, 2780)
		story := s.load(t).Story
		if story.Cause != "key-removed" || !strings.Contains(story.Sentence,
			"the "+test.entry+" was removed from "+test.on+" at 0.900 s") {
			t.Fatalf("cause %s: %s", story.Cause, story.Sentence)
		}
		acl := false
		for _, a := range story.Advice {
			acl = acl || strings.Contains(a.Text, "ACLs on the nodes")
			if strings.Contains(a.Text, "FLUSHALL") {
				t.Errorf("advice for Redis: %s", a.Text)
			}
		}
		if !acl {
			t.Errorf("no advice on ACLs: %+v", story.Advice)
		}
		if by := strings.Contains(story.Sentence, "n1 granted it to client 0"); by != test.seen {
			t.Errorf("names the member: %v, want %v: %s", by, test.seen, story.Sentence)
		}
	}
}

// TestSessionEndedOnBusyServer: a server that ends idle sessions, and once does not reply in time, has not restarted.
func TestSessionEndedOnBusyServer(t *testing.T) {
	for _, test := range []struct{ kind, option, idle, cause string }{
		{cluster.Postgres, "idle_session_timeout", "1000", "session-ended"},
		{cluster.Postgres, "idle_session_timeout", "3000", "forgotten-in-restart"},
		{cluster.MySQL, "wait_timeout", "1", "session-ended"},
		{cluster.MySQL, "wait_timeout", "3", "forgotten-in-restart"},
	} {
		s := newSynth("idle", "orders", 2, cluster.Topology{
			Kind: test.kind, Options: map[string]string{test.option: test.idle},
		}, 1)
		s.hold(0, "c0-1", 0, holdTimes{10, 20, 3000, 0})
		s.hold(1, "c1-1", 0, holdTimes{900, 1500, 2500, 0})
		s.watch("n1", "master", 0, 1100, owned("c0-1", 20, 1060, -1))
		s.watch("n1", "", 1100, 1300, noHolder)
		s.watch("n1", "master", 1300, 3100, owned("c1-1", 1500, 2500, -1))
		s.number()
		s.overlap(checker.BrokenPromise, 0, 1, 1500, 2500)
		if r := s.load(t); r.Story.Cause != test.cause {
			t.Errorf("%+v: cause %s: %s", test, r.Story.Cause, r.Story.Sentence)
		}
	}
}

// TestSessionEndedUnseen: the reset of a connection ends a session, whether the harness reads the lock or not.
func TestSessionEndedUnseen(t *testing.T) {
	for _, seen := range []bool{true, false} {
		s := newSynth("reset", "orders", 3, cluster.Topology{Kind: cluster.Postgres}, 1)
		s.hold(2, "c2-1", 0, holdTimes{5, 10, 400, 0})
		s.hold(0, "c0-1", 0, holdTimes{20, 410, 3000, 0})
		s.hold(1, "c1-1", 0, holdTimes{30, 620, 2500, 0})
		s.fault(600, "connection-reset", history.FaultValue{ID: 1, Phase: history.Injected, Target: "client:0"})
		s.fault(605, "connection-reset", history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "client:0"})
		if seen {
			s.watch("n1", "master", 0, 410, owned("c2-1", 10, 400, -1))
			s.watch("n1", "master", 415, 610, owned("c0-1", 410, 605, -1))
			s.watch("n1", "master", 625, 3100, owned("c1-1", 620, 2500, -1))
		} else {
			s.watch("n1", "master", 0, 3100, noHolder)
		}
		s.number()
		s.overlap(checker.BrokenPromise, 0, 1, 620, 2500)
		if story := s.load(t).Story; story.Cause != "session-ended" || !strings.Contains(story.Sentence, "reset at 0.605 s") {
			t.Errorf("seen %v: cause %s: %s", seen, story.Cause, story.Sentence)
		}
	}
}
