package reports

import (
	"regexp"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// ensembleRun: a majority of a ZooKeeper ensemble loses its disks while the lock is held, the other member is down.
func ensembleRun() *synth { return disksLost(6747) }

// disksLost is such a run, in which the first hold is released at the given millisecond.
func disksLost(released float64) *synth {
	s := newSynth("zk-disks-lost", "orders", 3, cluster.Topology{Kind: cluster.ZooKeeper, Members: 3}, 3)
	s.m.Lock = "zk-mutex"
	s.m.Expect = map[string]string{"exclusion": "violated", "fencing": "violated"}
	s.hold(0, "own-0-aaaa", 8589934599, holdTimes{1, 745, released, 10790})
	s.hold(1, "own-1-bbbb", 4294967303, holdTimes{3501, 4830, 10842, 10790})
	s.touch(released-1, 0, "own-0-aaaa", 8589934599, history.TouchValue{})
	for i, f := range []struct {
		name, target, detail string
		at, heal             float64
	}{
		{"restart", "n3", "process exited", 42, 600}, {"kill", "n3", "process exited", 2512, 11881},
		{"restart-empty", "n1+n2", "2 processes exited", 2641, 3944},
	} {
		s.fault(f.at-1, f.name, history.FaultValue{ID: i + 1, Phase: history.Injected, Target: f.target})
		s.fault(f.at, f.name, history.FaultValue{ID: i + 1, Phase: history.TookEffect, Target: f.target, Detail: f.detail})
		s.fault(f.heal, f.name, history.FaultValue{ID: i + 1, Phase: history.Healed, Target: f.target})
	}
	nodeOf := func(t float64) (string, float64) {
		if o, _ := owned("own-0-aaaa", 735, 2641, 0)(t); o != "" {
			return o, -1
		}
		o, _ := owned("own-1-bbbb", 4829, 10842, 0)(t)
		return o, -1
	}
	for node, role := range map[string]string{"n1": "slave", "n2": "master"} {
		s.watch(node, role, 660, 2641, nodeOf)
		s.watch(node, "", 2645, 4768, noHolder)
		s.watch(node, role, 4768, 11900, nodeOf)
	}
	s.watch("n3", "slave", 660, 2512, nodeOf)
	s.watch("n3", "", 2515, 11881, noHolder)
	s.number()
	v := checker.Violation{Rule: "only one owner holds the lock", Text: "client 0 and client 1 held it at once",
		Class: checker.BrokenPromise, Key: "orders", Clients: []int{0, 1}, Owners: []string{"own-0-aaaa", "own-1-bbbb"},
		Events: []int{s.find(history.OK, 0, history.Acquire, ""), s.find(history.OK, 1, history.Acquire, ""),
			s.find(history.Invoke, 0, history.Release, "")},
		Start: ms(4830), End: ms(6747), Severity: ms(1917)}
	s.j = checker.Judgement{Verdict: checker.Unsafe, Class: checker.BrokenPromise,
		Sentence: "two clients held the lock for 1.92 s", Results: []checker.Result{
			{Property: checker.Exclusion, Outcome: checker.Violated, Summary: "1 overlap", Total: 1,
				Violations: []checker.Violation{v}, Counts: map[string]int64{"holds": 2}},
			{Property: checker.Exercised, Outcome: checker.Holds, Summary: "3 faults, each with an effect"},
		}}
	return s
}

// TestEnsembleInItsOwnWords: no format describes ZooKeeper in the words of Redis.
func TestEnsembleInItsOwnWords(t *testing.T) {
	r := ensembleRun().load(t)
	redis := regexp.MustCompile(`(?i)\b(master|replica|slave|no expiry|the key|append(only|fsync)|redlock|redis)\b`)
	for _, format := range []string{"text", "markdown", "svg"} {
		body := strings.ReplaceAll(render(t, r, format), r.Manifest.Why, "")
		if found := redis.FindAllString(body, -1); len(found) > 0 {
			t.Errorf("%s: %q", format, found)
		}
	}
	page := render(t, r, "html")
	for text, want := range map[string]bool{">LEADER<": true, " · ends with its session<": true, "was leader from": true,
		">MASTER<": false, "was master from": false, "no expiry<": false} {
		if strings.Contains(page, text) != want {
			t.Errorf("the page contains %q: %v, want %v", text, !want, want)
		}
	}
	all := evidence.Interval{Until: r.History.End}
	if b := timeline.NewColumns(r, all, all, "orders"); b.Leader != "leader" || b.Endless[0] != "ends with its session" {
		t.Errorf("the page calls the leader %q, and labels a lock with %q", b.Leader, b.Endless[0])
	}
}

// TestEtcdKeyEndsWithItsLease: the key of a lock on etcd has no expiry of its own, and does not stay.
func TestEtcdKeyEndsWithItsLease(t *testing.T) {
	s := ensembleRun()
	s.m.Topology = cluster.Topology{Kind: cluster.Etcd, Members: 3}
	r := s.load(t)
	page, all := render(t, r, "html"), evidence.Interval{Until: r.History.End}
	b := timeline.NewColumns(r, all, all, "orders")
	if !strings.Contains(page, " · ends with its lease<") || strings.Contains(page, "no expiry<") ||
		b.Endless[0] != "ends with its lease" {
		t.Errorf("the page labels a lock on etcd with %q", b.Endless)
	}
}

// TestClientsWaitsCountRefusals: the longest wait of a client is the wait of any acquire, also of a refused one.
func TestClientsWaitsCountRefusals(t *testing.T) {
	s := newSynth("refused", "orders", 2, cluster.Topology{Kind: cluster.Single}, 1)
	s.hold(0, "own-0-aaaa", 1, holdTimes{10, 12, 900, 1000})
	s.add(20, history.Invoke, 1, history.Acquire, &history.Value{Owner: "own-1-bbbb"})
	s.add(520, history.Fail, 1, history.Acquire, &history.Value{Owner: "own-1-bbbb"})
	s.number()
	for _, c := range s.load(t).PerClient() {
		if want := []float64{2, 500}[c.Client]; c.Longest != ms(want) {
			t.Errorf("client %d waited for %v, want %v", c.Client, c.Longest, ms(want))
		}
	}
}

// TestTokenOfEmptyDisks: the holds did not overlap, but the token of the second is older or the same, because the
// ensemble lost its disks.
func TestTokenOfEmptyDisks(t *testing.T) {
	for token, later := range map[uint64]string{
		4294967303: "with token 4294967303", 8589934599: "with the same token 8589934599",
	} {
		t.Run(later, func(t *testing.T) { testTokenOfEmptyDisks(t, token, later) })
	}
}

func testTokenOfEmptyDisks(t *testing.T, token uint64, later string) {
	s := disksLost(4000)
	granted := s.find(history.OK, 1, history.Acquire, "")
	s.events[granted].Value.Token = token
	s.j.Results[0].Property = checker.Fencing
	v := &s.j.Results[0].Violations[0]
	v.Text, v.Start, v.End, v.Severity = "client 1 got an older token", ms(4830), ms(4830), 0
	v.Events = []int{s.find(history.OK, 0, history.Acquire, ""), granted}
	r := s.load(t)
	want := "Client 0 was granted `orders` with token 8589934599, and later client 1 " + later + ": client 0 " +
		"got the lock at 0.745 s (n2 was the leader); n3 was killed at 2.512 s (`kill`); n1 and n2 were killed at 2.641 s " +
		"and restarted empty at 3.944 s (`restart-empty`); client 1 got the lock at 4.830 s (n2 was the leader)"
	if r.Story.Cause != "forgotten-by-ensemble" || r.Story.Sentence != want {
		t.Errorf("cause %s: %s", r.Story.Cause, r.Story.Sentence)
	}
	checkProofs(t, r)
	checkCause(t, r)
}
