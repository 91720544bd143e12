package reports

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// leftRun: the reply to an acquire of client 0 was lost, its key stays, and after that client 1 asked in vain.
func leftRun() *synth {
	s := newSynth("left", "orders", 2, cluster.Topology{Kind: cluster.Etcd, Members: 1}, 1)
	s.hold(0, "c0-1", 3, holdTimes{10, 20, 100, 0})
	s.hold(1, "c1-1", 5, holdTimes{110, 120, 200, 0})
	for i, p := range []history.Process{0, 1} {
		owner := []string{"c0-2", "c1-2"}[i]
		s.add(300+50*float64(i), history.Invoke, p, history.Acquire, &history.Value{Owner: owner, Lease: ms(500)})
		s.add(1300+50*float64(i), history.Info, p, history.Acquire, &history.Value{Owner: owner})
	}
	s.fault(250, "reply-lost", history.FaultValue{ID: 1, Phase: history.Injected, Target: "client:0"})
	s.fault(310, "reply-lost", history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "client:0",
		Detail: "30 bytes lost"})
	s.fault(1290, "reply-lost", history.FaultValue{ID: 1, Phase: history.Healed, Target: "client:0"})
	left := history.Event{Time: ms(2500), Type: history.Info, Process: history.Nemesis, F: history.LeftoverEvent,
		Key: "orders", Value: &history.Value{Left: &history.LeftoverValue{Keys: []string{"orders/a0"}}}}
	s.events = append(s.events, left)
	s.watch("n1", "master", 0, 2600, noHolder)
	for i := range s.samples {
		at, session := s.samples[i].Time, ""
		switch {
		case ms(15) < at && at < ms(100), at > ms(305):
			session = "0xa0"
		case ms(115) < at && at < ms(200):
			session = "0xa1"
		default:
			continue
		}
		s.samples[i].Keys = map[string]history.KeyState{"orders": {Session: session, TTL: -1}}
	}
	s.number()
	s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.Leak,
		Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Key: "orders", Clients: []int{1},
			Text: "orders/a0 of orders left behind", Start: ms(1850), End: ms(2500), Events: []int{
				s.find(history.Invoke, 1, history.Acquire, "c1-2"),
				s.find(history.Info, history.Nemesis, history.LeftoverEvent, "")}}}}}}
	return s
}

// TestReleaseHeldBack: the release of a lock without a lease was held back, and took effect when the partition had
// healed; the cause is that release, although the lock was granted again later.
func TestReleaseHeldBack(t *testing.T) {
	s := newSynth("held-back", "orders", 2, cluster.Topology{Kind: cluster.Single}, 1)
	s.hold(0, "c0-1", 0, holdTimes{10, 20, 400, 0})
	s.events[3] = history.Event{Time: ms(2400), Type: history.Info, F: history.Release, Key: "orders",
		Value: &history.Value{Owner: "c0-1"}}
	s.add(30, history.Invoke, 1, history.Acquire, &history.Value{Owner: "c1-1"})
	s.add(3200, history.Fail, 1, history.Acquire, &history.Value{Owner: "c1-1"})
	s.hold(1, "c1-2", 0, holdTimes{3300, 3310, 3400, 0})
	for at, phase := range map[float64]history.Phase{390: history.Injected, 401: history.TookEffect,
		3250: history.Healed} {
		s.fault(at, "partition", history.FaultValue{ID: 1, Phase: phase, Target: "client:0", Detail: "25 bytes held"})
	}
	s.watch("n1", "master", 0, 3600, func(t float64) (string, float64) {
		if t > 15 && t < 3252 || t > 3305 && t < 3401 {
			return "1", -1
		}
		return "", 0
	})
	s.number()
	s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.Recovery,
		Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Key: "orders", Clients: []int{1},
			Start: ms(1520), End: ms(3200), Events: []int{s.find(history.OK, 0, history.Acquire, "c0-1"),
				s.find(history.Invoke, 1, history.Acquire, "c1-1"), s.find(history.Fail, 1, history.Acquire, "c1-1")}}}}}}
	r := s.load(t)
	checkProofs(t, r)
	want := "Client 0, granted `orders` at 0.020 s, asked to release it at 0.400 s, with an unknown outcome (client 0 was " +
		"cut off at 0.401 s, `partition`), and the key has no expiry: n1 still had it at 3.000 s; client 1, which asked for " +
		"`orders` at 0.030 s and waited until 3.200 s, was not granted it"
	if r.Story.Cause != "no-lease" || r.Story.Sentence != want {
		t.Errorf("cause %s: %s\nwant %s", r.Story.Cause, r.Story.Sentence, want)
	}
}

// TestLeftBehindNamesItsClient: the cause is the acquire whose reply was lost. Another client that asked later, whose
// outcome is unknown too, is no step of the story.
func TestLeftBehindNamesItsClient(t *testing.T) {
	r := leftRun().load(t)
	checkProofs(t, r)
	for _, want := range []string{"by client 0, sent at 0.300 s", "was lost at 0.310 s (`reply-lost`)",
		"n1 still had it at 2.500 s, and it ends with its lease"} {
		if r.Story.Cause != "left-behind" || !strings.Contains(r.Story.Sentence, want) {
			t.Errorf("cause %s: %q is missing in %s", r.Story.Cause, want, r.Story.Sentence)
		}
	}
	steps := ""
	for _, s := range r.Story.Steps {
		steps += s.Text + "\n"
	}
	if strings.Contains(steps, "client 1") || !strings.Contains(steps, "key `orders/a0` of `orders` left behind") {
		t.Errorf("steps:\n%s", steps)
	}
}

// TestProbeIsNoHold: the key that the harness acquires after the run is no client's.
func TestProbeIsNoHold(t *testing.T) {
	for left, want := range map[string]string{"": "acquired by the harness after the run",
		"orders": "client 0 (earlier hold)"} {
		s := newSynth("probe", "orders", 1, cluster.Topology{Kind: cluster.Single}, 1)
		s.hold(0, "c0-1", 0, holdTimes{10, 20, 100, 900})
		note := history.LeftoverValue{}
		if left != "" {
			note.Keys = []string{left}
		}
		s.add(500, history.Info, history.Nemesis, history.LeftoverEvent, &history.Value{Left: &note})
		s.add(520, history.OK, history.Nemesis, history.ProbeEvent, nil)
		s.watch("n1", "master", 0, 600, func(t float64) (string, float64) {
			if 15 <= t && t < 100 || t >= 509 || left != "" && t >= 100 {
				return "1", 900
			}
			return "", 0
		})
		s.number()
		r := s.load(t)
		seen := &history.Sample{Sent: ms(509), Time: ms(510), Up: true,
			Keys: map[string]history.KeyState{"orders": {Owner: "1", TTL: ms(900)}}}
		if got := r.HeldBy("orders", seen).Label; got != want {
			t.Errorf("after a note of %q the key is labeled %q, want %q", left, got, want)
		}
	}
}

// TestProbeOwnerIsNoClient: a probe that did not succeed is the harness's too; servers have its name.
func TestProbeOwnerIsNoClient(t *testing.T) {
	s := newSynth("probe", "orders", 1, cluster.Topology{Kind: cluster.Single}, 1)
	s.hold(0, "c0-1", 0, holdTimes{10, 20, 100, 900})
	s.number()
	seen := &history.Sample{Sent: ms(509), Time: ms(510), Up: true,
		Keys: map[string]history.KeyState{"orders": {Owner: "5a:" + history.ProbeOwner + "0", TTL: ms(900)}}}
	if got := s.load(t).HeldBy("orders", seen).Label; got != "acquired by the harness after the run" {
		t.Errorf("a probe's key is labeled %q", got)
	}
}

// TestDeadHolderKeepsItsKey: a value without the name of an owner belongs to the dead client, until it changes, and not
// to a waiting one.
func TestDeadHolderKeepsItsKey(t *testing.T) {
	s := newSynth("dead", "orders", 2, cluster.Topology{Kind: cluster.Single}, 1)
	s.add(10, history.Invoke, 0, history.Acquire, &history.Value{Owner: "c0-1"})
	s.add(20, history.OK, 0, history.Acquire, &history.Value{Owner: "c0-1", Valid: ms(900)})
	s.add(100, history.Info, 0, history.Crash, nil)
	s.hold(1, "c1-1", 0, holdTimes{30, 1200, 1500, 900})
	s.watch("n1", "master", 0, 1600, func(t float64) (string, float64) {
		switch {
		case 15 <= t && t < 1190:
			return "946684800920", -1
		case 1190 <= t && t < 1500:
			return "946684802100", -1
		}
		return "", 0
	})
	s.number()
	r := s.load(t)
	for at, want := range map[float64]string{60: "client 0", 600: "client 0 (earlier hold)", 1300: "client 1"} {
		samples := r.Witness.During("n1", ms(at), ms(at+19))
		if got := r.HeldBy("orders", &samples[0]).Label; got != want {
			t.Errorf("at %v ms the key is labeled %q, want %q", at, got, want)
		}
	}
}

// TestGrantsOfSomeClients: clients without a grant are not counted among the others.
func TestGrantsOfSomeClients(t *testing.T) {
	s := newSynth("some", "orders", 2, cluster.Topology{Kind: cluster.Single}, 1)
	s.hold(0, "c0-1", 0, holdTimes{10, 20, 100, 900})
	s.add(30, history.Invoke, 1, history.Acquire, &history.Value{Owner: "c1-1"})
	s.add(40, history.Fail, 1, history.Acquire, nil)
	s.number()
	if got := s.load(t).Story.Facts[0]; !strings.HasPrefix(got, "1 grant to 1 of 2 clients in ") {
		t.Error(got)
	}
}

// TestNothingToHeal: a fault that is over once it has taken effect was not healed at any time.
func TestNothingToHeal(t *testing.T) {
	for detail, want := range map[string]string{history.NothingToUndo: "nothing to heal", "it replies": "0.900 s"} {
		s := newSynth("single", "orders", 1, cluster.Topology{Kind: cluster.Single}, 1)
		s.hold(0, "c0-1", 0, holdTimes{10, 20, 1000, 900})
		for at, phase := range map[float64]history.Phase{500: history.Injected, 510: history.TookEffect,
			900: history.Healed} {
			f := history.FaultValue{ID: 1, Phase: phase, Target: "n1"}
			if phase == history.Healed {
				f.Detail = detail
			}
			s.fault(at, "flushall", f)
		}
		s.number()
		r := s.load(t)
		page := render(t, r, "html")
		if cell := `<td class="r">` + want + "</td>"; !strings.Contains(page, cell) {
			t.Errorf("%s: the table of faults has no %s", detail, cell)
		}
		if strings.Contains(page, ", healed at 0.900 s") == (detail == history.NothingToUndo) {
			t.Errorf("%s: the picture says when it was healed, or does not", detail)
		}
	}
}

// TestValidityIsThatOfTheGrant: a release ends the counted part of a validity, and not the promise.
func TestValidityIsThatOfTheGrant(t *testing.T) {
	s := newSynth("valid", "orders", 1, cluster.Topology{Kind: cluster.Single}, 1)
	s.hold(0, "c0-1", 0, holdTimes{10, 20, 100, 900})
	s.number()
	r := s.load(t)
	all := evidence.Interval{Until: r.History.End}
	if b := timeline.NewColumns(r, all, all, "orders"); b.Holds.Valid[0] != 900_000 {
		t.Errorf("valid for %d µs, want 900,000", b.Holds.Valid[0])
	}
	if page := render(t, r, "html"); !strings.Contains(page, "was valid until 0.920 s") {
		t.Error("the picture has another validity than 0.920 s")
	}
}
