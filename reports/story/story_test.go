package story

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// TestSafeGrants: holders of permits and readers may hold a lock at once, and "without overlap" is said only if
// exclusion was found to hold.
func TestSafeGrants(t *testing.T) {
	exclusion := checker.Result{Property: checker.Exclusion, Outcome: checker.Holds}
	permits := checker.Result{Property: checker.Permits, Outcome: checker.Holds, Counts: map[string]int64{"most_held": 3}}
	mutex, reader := evidence.Hold{}, evidence.Hold{Hold: checker.Hold{Reader: true}}
	permit := evidence.Hold{Hold: checker.Hold{Permits: 2}}
	for want, test := range map[string]struct {
		holds   []evidence.Hold
		results []checker.Result
	}{
		"2 grants without overlap": {[]evidence.Hold{mutex, mutex}, []checker.Result{exclusion}},
		"2 grants":                 {[]evidence.Hold{mutex, mutex}, nil},
		"2 grants without overlap of a writer with another client": {[]evidence.Hold{mutex, reader},
			[]checker.Result{exclusion}},
		"2 grants of permits, at most 3 permits held at once, not more than exist": {[]evidence.Hold{permit, permit},
			[]checker.Result{permits}}, "1 grant of permits": {[]evidence.Hold{permit}, []checker.Result{exclusion}},
		"1 grant without overlap; 1 grant of permits, at most 3 permits held at once, not more than exist": {
			[]evidence.Hold{mutex, permit}, []checker.Result{exclusion, permits}},
	} {
		r := &evidence.Run{Holds: test.holds, Judgement: checker.Judgement{Results: test.results}}
		if got := strings.Join(grants(r), "; "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestFaultSentenceCountsNodes: a fault on several nodes counts each; a client, a link or a group is no node.
func TestFaultSentenceCountsNodes(t *testing.T) {
	r := &evidence.Run{Holds: []evidence.Hold{{To: 10}}}
	for _, name := range []string{"n1", "n2", "n3"} {
		r.Manifest.Nodes = append(r.Manifest.Nodes, cluster.Node{Name: name})
	}
	for want, targets := range map[string][]string{
		"`kill` hit 1 of 3 nodes":    {"n2"},
		"`kill` hit 2 of 3 nodes":    {"n1+n2", "n2"},
		"`kill` hit 3 of 3 nodes":    {"n1+n2", "n3"},
		"`kill` took effect once":    {"n2>n1"},
		"`kill` took effect 2 times": {"n1", "client:0"},
		"`kill` took effect 3 times": {"ring", "all", ""},
	} {
		injections := make([]*evidence.Fault, 0, len(targets))
		for _, target := range targets {
			injections = append(injections, &evidence.Fault{Name: "kill", Target: target, Inject: 5,
				Effects: []history.Fault{{Time: 5}}})
		}
		if got := faultSentence(r, "kill", injections); got != want+" while the lock was held" {
			t.Errorf("%q: %s, want %s", targets, got, want)
		}
	}
}

// TestPermitsAreOverlaps: violations of permits are shown as overlaps.
func TestPermitsAreOverlaps(t *testing.T) {
	for p, want := range map[checker.Property]bool{
		checker.Permits: true, checker.ReadersWriter: true, checker.Exclusion: true, checker.Linearizable: false,
	} {
		if evidence.Overlaps(p) != want {
			t.Errorf("overlaps(%s) = %v", p, !want)
		}
	}
	for n, want := range map[int32]string{0: "the lock", 1: "1 permit", 3: "3 permits"} {
		if h := (&evidence.Hold{Hold: checker.Hold{Permits: n}}); !strings.Contains(h.Object("the lock"), want) {
			t.Errorf("%d permits are %q, want %q", n, h.Object("the lock"), want)
		}
	}
}

// TestSubjectOfEveryLink: words for many links at once are not names.
func TestSubjectOfEveryLink(t *testing.T) {
	for target, want := range map[string]string{"all": "every link was slowed down", "n1": "n1 was slowed down",
		"client:1>n2": "the link of client 1 to n2 was slowed down"} {
		if got := faultText(&evidence.Fault{Verb: "was slowed down", Target: target,
			Effects: []history.Fault{{}}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestUnknownAcquireMayHold: after an acquire of unknown outcome, the sentence says that no client was known to hold
// the lock, not that none held it.
func TestUnknownAcquireMayHold(t *testing.T) {
	for outcome, want := range map[string]string{
		"fail owner=c code=timeout": "while no client held the lock",
		"info owner=c code=timeout": "while no client was known to hold the lock",
	} {
		h, err := foreign.ReadText(strings.NewReader("clients 3\n"+
			"client 0 acquire orders 1.0-1.1 ok owner=a valid=9s\nclient 2 acquire orders 1.2-1.3 "+outcome+"\n"+
			"client 1 acquire orders 1.2-2.2 ok owner=b valid=9s\nclient 0 release orders 1.8-1.9 ok owner=a\n"+
			"client 1 release orders 2.5-2.6 ok owner=b\n"), "unknown")
		if err != nil {
			t.Fatal(err)
		}
		r := evidence.OfHistory("unknown", h, checker.Judge(h, checker.Options{}), nil)
		if got := safeSentence(r); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", outcome, got, want)
		}
	}
}

// TestDecisiveViolation: the page explains a violation that has the class of the verdict, two holders at once above
// their consequences.
func TestDecisiveViolation(t *testing.T) {
	result := func(p checker.Property, classes ...checker.Class) checker.Result {
		x := checker.Result{Property: p, Outcome: checker.Violated}
		for _, class := range classes {
			x.Violations = append(x.Violations, checker.Violation{Class: class, Text: string(p) + " " + string(class)})
		}
		return x
	}
	broken, outlived := checker.BrokenPromise, checker.OutlivedLease
	for want, results := range map[string][]checker.Result{
		"permits broken promise": {result(checker.Permits, broken), result(checker.Linearizable, broken)},
		"honesty broken promise": {result(checker.Exclusion, outlived), result(checker.Damage, outlived),
			result(checker.Honesty, "", broken)},
		"exclusion broken promise": {result(checker.Exclusion, outlived, broken), result(checker.Honesty, broken)},
		"exclusion outlived lease": {result(checker.Exclusion, outlived), result(checker.WakeUp, "")},
		"wake-up ":                 {result(checker.WakeUp, "")},
	} {
		j := checker.Judgement{Verdict: checker.Unsafe, Results: results}
		if strings.HasSuffix(want, string(broken)) {
			j.Class = broken
		} else if strings.HasSuffix(want, string(outlived)) {
			j.Class = outlived
		}
		if all := mostSevere(&evidence.Run{Judgement: j, History: &history.History{}}); all[0].Text != want {
			t.Errorf("%q is explained, want %q", all[0].Text, want)
		}
	}
}
