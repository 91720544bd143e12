package reports

import (
	"testing"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestFaultSentenceCountsNodes: a fault on several nodes counts each; a client, a link or a group is no node.
func TestFaultSentenceCountsNodes(t *testing.T) {
	r := &Run{holds: []hold{{to: 10}}}
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
		injections := make([]*injection, 0, len(targets))
		for _, target := range targets {
			injections = append(injections, &injection{name: "kill", target: target, inject: 5, effects: []history.Fault{{Time: 5}}})
		}
		if got := faultSentence(r, "kill", injections); got != want+" while the lock was held" {
			t.Errorf("%q: %s, want %s", targets, got, want)
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
		f := &injection{name: "kill", verb: test.verb}
		if one, many := f.predicate(1), f.predicate(2); one != test.one || many != test.many {
			t.Errorf("%q: n1 %s, n1 and n2 %s", test.verb, one, many)
		}
	}
}

// TestEndOfFault: only a client that was paused resumes when its fault is healed.
func TestEndOfFault(t *testing.T) {
	for want, f := range map[string]injection{
		"client 2 resumes":                                          {class: history.FaultPauses, object: history.ObjectProcess},
		"client 2 is connected again":                               {class: history.FaultCuts, object: history.ObjectTraffic},
		"fault `x` on client 2 is healed":                           {class: history.FaultDelays, object: history.ObjectTraffic},
		"the replies to client 2 that were held back are delivered": {class: history.FaultDelays, object: history.ObjectReplies},
	} {
		f.name, f.target = "x", "client:2"
		if got := f.healedText(); got != want {
			t.Errorf("%s %s: %s, want %s", f.class, f.object, got, want)
		}
	}
}

// TestWriteNamesNewerToken: a write names the highest token that the resource had seen only if that is a newer one.
func TestWriteNamesNewerToken(t *testing.T) {
	r := &Run{History: &history.History{Clients: 3, Keys: []string{"orders"}}}
	for seen, want := range map[uint64]string{0: "", 5: "", 7: " (highest seen: 7)"} {
		got := r.touchText(&history.Touched{TouchValue: history.TouchValue{MaxSeen: seen}, Process: 1, Token: 5, Accepted: true})
		if want = "client 1 writes to the resource guarded by `orders` with token 5" + want; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestFaultSentenceKeptLock: after the client stopped relying on the lock, the server may still have it: a fault then
// did not come while nobody held it.
func TestFaultSentenceKeptLock(t *testing.T) {
	for want, keptUntil := range map[string]float64{
		"`kill` took effect once while a server kept the lock":   200,
		"`kill` took effect once, never while the lock was held": 90,
	} {
		s := newSynth("crash", "orders", 1, cluster.Topology{Kind: cluster.Single}, 1)
		s.hold(0, "own-0-aaaa", 0, holdTimes{requested: 10, from: 11, to: 80, valid: 200})
		s.watch("n1", "master", 0, 300, owned("own-0-aaaa", 10, keptUntil, 300))
		s.number()
		r := s.load(t)
		at := ms(150)
		if got := faultSentence(r, "kill", []*injection{{name: "kill", target: "client:0", inject: at,
			effects: []history.Fault{{Time: at}}}}); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
