package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/scenarios"
)

func active1(name string, drawn bool, thing string) *active {
	return &active{name: name, drawn: drawn, resources: []faults.Resource{{Name: thing}}}
}

// TestControlledResourceIsRefused: a fault is refused while another one controls a resource that it needs, and the
// reason names the other one.
func TestControlledResourceIsRefused(t *testing.T) {
	n := &nemesis{maxDown: -1}
	first := active1("kill", false, "the process of n1")
	if why := n.claim(first, 0); why != "" {
		t.Fatal(why)
	}
	if why := n.claim(active1("restart", false, "the process of n1"), 0); !strings.Contains(why, "kill") {
		t.Errorf("restart beside kill: %q", why)
	}
	if why := n.claim(active1("restart", false, "the process of n2"), 0); why != "" {
		t.Error(why)
	}
	n.markHealed(first)
	if why := n.claim(active1("restart", false, "the process of n1"), 0); why != "" {
		t.Error("after it was healed: ", why)
	}
}

// TestNoMoreDrawnFaultsThanAllowed: listed ones do not count.
func TestNoMoreDrawnFaultsThanAllowed(t *testing.T) {
	n := &nemesis{maxDown: -1}
	one, two := active1("kill", true, "1"), active1("kill", true, "2")
	for _, a := range []*active{one, active1("kill", false, "3"), two} {
		if why := n.claim(a, 2); why != "" {
			t.Fatal(why)
		}
	}
	if why := n.claim(active1("kill", true, "4"), 2); !strings.Contains(why, "no more are allowed") {
		t.Errorf("a third drawn fault: %q", why)
	}
	n.markHealed(one)
	if why := n.claim(active1("kill", true, "5"), 2); why != "" {
		t.Error("when one was healed: ", why)
	}
}

// TestServersThatAreKept: no fault, drawn or listed, takes more away than may be spared; one node is away once.
func TestServersThatAreKept(t *testing.T) {
	n := &nemesis{maxDown: 2}
	hit := func(thing string, nodes ...string) *active {
		a := active1("pause-node", false, thing)
		a.nodesDown = nodes
		return a
	}
	first := hit("1", "n1")
	for _, a := range []*active{first, hit("2", "n1", "n2"), hit("a client")} {
		if why := n.claim(a, 0); why != "" {
			t.Fatal(why)
		}
	}
	if why := n.claim(hit("3", "n3"), 0); !strings.Contains(why, "3 servers would be away") {
		t.Errorf("a third server: %q", why)
	}
	n.markHealed(n.active[1])
	if why := n.claim(hit("3", "n3"), 0); why != "" {
		t.Error("when one was healed: ", why)
	}
}

// TestReleasingComesBeforeReleased: the one when the client asks, the other when it is answered.
func TestReleasingComesBeforeReleased(t *testing.T) {
	track := newTracker(1, []string{"orders"})
	before, after := track.arm("releasing"), track.arm("released")
	e := history.Event{F: history.Release, Key: "orders", Type: history.Invoke, Value: &history.Value{Owner: "a"}}
	track.add(e)
	if len(before.fired) != 1 || len(after.fired) != 0 {
		t.Errorf("asked: %d and %d traps sprang", len(before.fired), len(after.fired))
	}
	e.Type = history.OK
	track.add(e)
	if len(after.fired) != 1 {
		t.Error("answered, and nothing sprang")
	}
}

// TestAmountIsInTheRecord: what was asked for, or the fault's own default.
func TestAmountIsInTheRecord(t *testing.T) {
	row, err := faults.Lookup("slow-node")
	if err != nil {
		t.Fatal(err)
	}
	if text := describe(row, scenarios.Step{Amount: 3 * time.Second}); !strings.Contains(text, "Amount: 3s.") {
		t.Error(text)
	}
	if text := describe(row, scenarios.Step{}); !strings.Contains(text, "Amount: 500ms.") {
		t.Error(text)
	}
}
