package evidence

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
)

func TestSamplingGaps(t *testing.T) {
	at := func(node string, times ...float64) (all []history.Sample) {
		for _, n := range times {
			all = append(all, history.Sample{Node: node, Time: msE(n), Up: true})
		}
		return all
	}
	kill := []Fault{{Name: "kill", Inject: msE(1000), Effects: []history.Fault{{Time: msE(1010)}}}}
	for _, c := range []struct {
		name    string
		samples []history.Sample
		faults  []Fault
		want    *SamplingGaps
	}{
		{"no samples", nil, kill, nil},
		{"one sample is no gap", at("n1", 5), kill, nil},
		{"no fault", at("n1", 0, 8, 16, 50), nil, &SamplingGaps{Median: msE(8), Largest: msE(34), Node: "n1"}},
		{"wide, but far from the fault", at("n1", 0, 500, 980, 988, 996), kill,
			&SamplingGaps{Median: msE(480), Largest: msE(500), Node: "n1", NearFaults: msE(480)}},
		{"wide across the fault", at("n1", 0, 8, 16, 990, 1050), kill,
			&SamplingGaps{Median: msE(60), Largest: msE(974), Node: "n1", NearFaults: msE(974)}},
		{"long after the fault", at("n1", 1112, 2000), kill, &SamplingGaps{Median: msE(888), Largest: msE(888), Node: "n1"}},
		{"gaps are per node", append(at("n1", 980, 988), at("n2", 900, 1020)...), kill,
			&SamplingGaps{Median: msE(120), Largest: msE(120), Node: "n2", NearFaults: msE(120)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWitness(c.samples, nil)
			if diff := cmp.Diff(c.want, measureGaps(&w, c.faults)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestKeyNamedAfterItsLock: leftovers are not named twice.
func TestKeyNamedAfterItsLock(t *testing.T) {
	for want, l := range map[string]history.LeftoverValue{
		"key `own-2` left behind":                         {Keys: []string{"own-2"}},
		"key `own-2` and 1 permit of `own-2` left behind": {Keys: []string{"own-2"}, Permits: 1},
		"key `own-2:queue` of `own-2` left behind":        {Keys: []string{"own-2:queue"}},
	} {
		if got := leftText(&history.Leftover{LeftoverValue: l}, "`own-2`"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestStateOfFault: a slow clock loses time; every other fault has its observation.
func TestStateOfFault(t *testing.T) {
	seen := []history.Fault{{FaultValue: history.FaultValue{Detail: "seen"}}}
	for want, f := range map[string]Fault{
		"loses 2s every second": {Class: history.FaultSkews, Object: history.ObjectRate,
			Detail: "makes a clock slow. Amount: -2s.", Effects: seen},
		"seen": {Class: history.FaultKills, Effects: seen},
		"":     {Class: history.FaultSkews, Object: history.ObjectRate, Detail: "Amount: 2s."},
	} {
		if got := f.State(); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}

// TestPredicate: a fault without words, as in histories of earlier versions, is named.
func TestPredicate(t *testing.T) {
	for _, test := range []struct {
		verb      string
		one, many string
	}{
		{"had its clock changed", "had its clock changed", "had their clock changed"},
		{"was killed", "was killed", "were killed"},
		{"", "was hit by fault `kill`", "were hit by fault `kill`"},
	} {
		f := &Fault{Name: "kill", Verb: test.verb}
		if one, many := f.Predicate(1), f.Predicate(2); one != test.one || many != test.many {
			t.Errorf("%q: n1 %s, n1 and n2 %s", test.verb, one, many)
		}
	}
}

// TestClause: of a replication link, the master is the subject.
func TestClause(t *testing.T) {
	for want, f := range map[string]Fault{
		"n1 stopped replicating to n2":     {Target: "n2>n1", Verb: "stopped replicating", Object: history.ObjectReplication},
		"n1 stopped replicating":           {Target: "n1", Verb: "stopped replicating", Object: history.ObjectReplication},
		"the link of s1 to n1 was cut off": {Target: "s1>n1", Verb: "was cut off", Object: history.ObjectTraffic},
		"n1 and n2 were killed":            {Target: "n1+n2", Verb: "was killed", Object: history.ObjectProcess},
	} {
		if got := f.Clause(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestEndOfFault: only a client that was paused resumes when its fault is healed.
func TestEndOfFault(t *testing.T) {
	for want, f := range map[string]Fault{
		"client 2 resumes": {Class: history.FaultPauses,
			Object: history.ObjectProcess},
		"client 2 is connected again": {Class: history.FaultCuts,
			Object: history.ObjectTraffic},
		"fault `x` on client 2 is healed": {Class: history.FaultDelays,
			Object: history.ObjectTraffic},
		"the replies to client 2 that were held back are delivered": {Class: history.FaultDelays,
			Object: history.ObjectReplies},
	} {
		f.Name, f.Target = "x", "client:2"
		if got := f.HealedText(); got != want {
			t.Errorf("%s %s: %s, want %s", f.Class, f.Object, got, want)
		}
	}
}

func msE(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
