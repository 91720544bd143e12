package reports

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// TestDriftBeginsWithItsInjection: a clock gains from the injection on; its effect is measured later.
func TestDriftBeginsWithItsInjection(t *testing.T) {
	r := runOn(t, "sim", "clock-drift")
	from := "every second from " + format.Instant(r.Faults[0].Inject)
	if !strings.Contains(r.Story.Sentence, from) || r.Faults[0].Inject == r.Faults[0].EffectTime() {
		t.Errorf("%s, want %q", r.Story.Sentence, from)
	}
}

// TestWhyTheSentinelPromoted: the headline names the link that was cut off, without which nothing is promoted.
func TestWhyTheSentinelPromoted(t *testing.T) {
	r := runOn(t, "sim", "sentinel-quorum-1")
	want := "the link of s1 to n1 was cut off from " + format.Instant(r.Faults[1].Inject) + " (`partition`)"
	if !strings.Contains(r.Story.Sentence, want) {
		t.Errorf("%s, want %q", r.Story.Sentence, want)
	}
}

// TestWhyTheTokenIsSmaller: without the clock that is behind, the token would have grown although the counter is lost.
func TestWhyTheTokenIsSmaller(t *testing.T) {
	for name, want := range map[string]bool{"token-failover": true, "failover": false} {
		r := runOn(t, "sim", name)
		text := fmt.Sprint(r.Story.Advice)
		if got := strings.Contains(text, "and the clock of n2 was 60.00 s behind (`clock-jump`)"); got != want {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestDriftIsNoOffset: the bar of a drift has its rate, because the offset that was measured first is soon past.
func TestDriftIsNoOffset(t *testing.T) {
	page := render(t, runOn(t, "sim", "clock-drift"), "html")
	if want := ">clock-drift · n1: gains 9s every second<"; !strings.Contains(page, want) {
		t.Errorf("the page lacks %q", want)
	}
	if strings.Contains(page, ">clock-drift · n1: the clock of n1 is ") {
		t.Error("the bar has an offset")
	}
}

// pausedRun: a client is stopped past its validity. It writes and notices the loss before the healing is recorded; a
// reply that it sent before it was stopped is recorded after that.
func pausedRun() *synth {
	s := newSynth("paused", "orders", 2, cluster.Topology{Kind: cluster.Single}, 1)
	s.add(10, history.Invoke, 0, history.Acquire, &history.Value{Owner: "a"})
	s.add(20, history.OK, 0, history.Acquire, &history.Value{Owner: "a", Token: 1, Valid: ms(1000)})
	s.add(90, history.Invoke, 0, history.Renew, &history.Value{Owner: "a"})
	for phase, at := range map[history.Phase]float64{history.Injected: 100, history.TookEffect: 110,
		history.Healed: 3005} {
		s.fault(at, "pause-client", history.FaultValue{ID: 1, Phase: phase, Target: "client:0"})
	}
	s.add(112, history.OK, 0, history.Renew, &history.Value{Owner: "a", Valid: ms(1000)})
	s.hold(1, "b", 2, holdTimes{15, 1300, 1800, 1000})
	s.touch(1700, 1, "b", 2, history.TouchValue{MaxSeen: 1})
	s.add(3003, history.Invoke, 0, history.Release, &history.Value{Owner: "a"})
	s.touch(3003, 0, "a", 1, history.TouchValue{Read: 0, Found: 1, MaxSeen: 2})
	s.add(3004, history.Info, 0, history.Lost, &history.Value{Owner: "a"})
	s.add(3010, history.Fail, 0, history.Release, nil)
	s.number()
	return s
}

// TestPauseEndsBeforeTheClientWrites: the healing of a pause is recorded after the client was resumed, and no sentence
// says that it wrote while it was paused.
func TestPauseEndsBeforeTheClientWrites(t *testing.T) {
	s := pausedRun()
	s.j = checker.Judge(s.load(t).History, checker.Options{})
	r := s.load(t)
	if want := "was paused from 0.110 s to 3.004 s (`pause-client`)"; !strings.Contains(r.Story.Sentence, want) {
		t.Errorf("%s, want %q", r.Story.Sentence, want)
	}
	if got := r.PerClient()[0].Lost; got != 1 {
		t.Errorf("client 0 learned %d times that it had lost the lock, want once: while it released it", got)
	}
}

// TestAdviceAgainstPowerLoss: after a power loss the advice is about fsync, and about disks only after disks were lost.
func TestAdviceAgainstPowerLoss(t *testing.T) {
	for name, want := range map[string][2]string{
		"zk-power-loss-unsynced": {"forceSync=yes", "Replace disks"},
		"zk-disks-lost":          {"Replace disks", "forceSync"},
	} {
		r := runOn(t, "sim", name)
		text := fmt.Sprint(r.Story.Advice)
		if !strings.Contains(text, want[0]) || strings.Contains(text, want[1]) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestRuleOfReaders: of a reader and a writer, no page says that only one owner may hold the lock.
func TestRuleOfReaders(t *testing.T) {
	r := runOn(t, "sim", "readers-writer-pause")
	for _, v := range r.Judgement.Result(checker.Exclusion).Violations {
		if !strings.HasPrefix(v.Rule, "a writer is the only holder") {
			t.Errorf("%s: %s", v.Rule, v.Text)
		}
	}
}

// TestInkOnPaleBars: the bar of an earlier hold is paler than the color of its client; so is not the text on it.
func TestInkOnPaleBars(t *testing.T) {
	page := render(t, runOn(t, "sim", "sentinel-quorum-1"), "html")
	pales := 0
	for _, bar := range strings.Split(page, "<rect ")[1:] {
		pale := strings.Contains(bar[:strings.Index(bar, ">")], `opacity=".6"`)
		label := strings.Contains(bar, `class="in"`)
		if dark := strings.Contains(bar, `fill="var(--pale-ink)"`); label && dark != pale {
			t.Errorf("pale %v, with the ink for pale bars %v: %s", pale, dark, bar)
		} else if pale && dark {
			pales++
		}
	}
	if pales == 0 {
		t.Error("no earlier hold has a label")
	}
}

// TestTwinThatPreventedNothing: a simulation of the twin is cited as prevention only if it was safe.
func TestTwinThatPreventedNothing(t *testing.T) {
	for verdict, want := range map[checker.Verdict]int{checker.Safe: 1, checker.Inconclusive: 0, checker.Unsafe: 0} {
		s := failoverRun("orders")
		s.m.Twin = &rundir.Twin{Scenario: "failover-wait-all", Summary: "the grant waits", Seed: 42, Verdict: verdict,
			Sentence: "4 holds"}
		advice := s.load(t).Story.Advice
		measured := slices.DeleteFunc(slices.Clone(advice), func(a evidence.Advice) bool {
			return !strings.HasPrefix(a.Text, "In simulation with seed 42,")
		})
		if len(measured) != want {
			t.Errorf("%s: %v", verdict, advice)
		}
	}
}

// TestLongestWaitCountsUnknownOutcomes: a client whose acquire has an unknown outcome waited until it learned that.
func TestLongestWaitCountsUnknownOutcomes(t *testing.T) {
	for _, c := range failoverRun("orders").load(t).PerClient() {
		if c.Client == 4 && c.Longest != ms(950) {
			t.Errorf("client 4 asked at 0.950 s and got no outcome until 1.900 s: %s", c.Longest)
		}
	}
}

// TestKeyOfAnUnansweredAcquire: a key that appeared after an acquire whose reply was lost does not belong to an
// earlier, released hold.
func TestKeyOfAnUnansweredAcquire(t *testing.T) {
	r := runOn(t, "sim", "expire-lost")
	kept := 0
	for _, s := range r.Witness.Samples["n1"] {
		if _, held := s.Keys["orders"]; held && s.Time > r.Faults[len(r.Faults)-1].Took().Time {
			kept++
			if x := r.HeldBy("orders", &s); x.Earlier || x.Label != "client 0" {
				t.Fatalf("at %s: %+v", s.Time, x)
			}
		}
	}
	if kept == 0 {
		t.Error("n1 did not keep the key")
	}
}
