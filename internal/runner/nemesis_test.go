package runner

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/stalls"
	"github.com/lockchaos/lockchaos/scenarios"
)

func activeFault(name string, drawn bool, resource string) *active {
	return &active{name: name, drawn: drawn, resources: []faults.Resource{{Name: resource}}}
}

// TestFaultsDoNotShareResources: a fault is refused as long as another one controls its resources.
func TestFaultsDoNotShareResources(t *testing.T) {
	n := &nemesis{maxDown: -1}
	first := activeFault("kill", false, "the process of n1")
	if why := n.claim(first, 0); why != "" {
		t.Fatal(why)
	}
	if why := n.claim(activeFault("restart", false, "the process of n1"), 0); !strings.Contains(why, "kill") {
		t.Errorf("restart during kill: %q", why)
	}
	if why := n.claim(activeFault("restart", false, "the process of n2"), 0); why != "" {
		t.Error(why)
	}
	n.markHealed(first)
	if why := n.claim(activeFault("restart", false, "the process of n1"), 0); why != "" {
		t.Error("after kill was healed: ", why)
	}
}

// TestDrawnFaultsAreLimited: listed faults do not count.
func TestDrawnFaultsAreLimited(t *testing.T) {
	n := &nemesis{maxDown: -1}
	one, two := activeFault("kill", true, "1"), activeFault("kill", true, "2")
	for _, a := range []*active{one, activeFault("kill", false, "3"), two} {
		if why := n.claim(a, 2); why != "" {
			t.Fatal(why)
		}
	}
	if why := n.claim(activeFault("kill", true, "4"), 2); why != "the limit of 2 random faults at once is reached" {
		t.Errorf("a third random fault: %q", why)
	}
	n.markHealed(one)
	if why := n.claim(activeFault("kill", true, "5"), 2); why != "" {
		t.Error("after one was healed: ", why)
	}
}

// TestServersDownAreLimited: faults take down no more servers than allowed; a server that two take down counts once.
func TestServersDownAreLimited(t *testing.T) {
	n := &nemesis{maxDown: 2}
	downing := func(resource string, nodes ...string) *active {
		a := activeFault("pause-node", false, resource)
		a.nodesDown = nodes
		return a
	}
	for _, a := range []*active{downing("1", "n1"), downing("2", "n1", "n2"), downing("a client")} {
		if why := n.claim(a, 0); why != "" {
			t.Fatal(why)
		}
	}
	if why := n.claim(downing("3", "n3"), 0); why != "3 servers would be down, and the scenario allows 2" {
		t.Errorf("a third server: %q", why)
	}
	n.markHealed(n.active[1])
	if why := n.claim(downing("3", "n3"), 0); why != "" {
		t.Error("after one was healed: ", why)
	}
}

// TestReleasingComesBeforeReleased: the first trigger fires at the invocation, the second at the completion.
func TestReleasingComesBeforeReleased(t *testing.T) {
	track := newTracker(1, []string{"orders"})
	releasing, released := track.arm("releasing"), track.arm("released")
	e := history.Event{F: history.Release, Key: "orders", Type: history.Invoke, Value: &history.Value{Owner: "a"}}
	track.add(e)
	if len(releasing.fired) != 1 || len(released.fired) != 0 {
		t.Errorf("invoke: releasing fired %d times, released %d times", len(releasing.fired), len(released.fired))
	}
	e.Type = history.OK
	track.add(e)
	if len(released.fired) != 1 {
		t.Errorf("ok: released fired %d times", len(released.fired))
	}
}

// TestAmountIsRecorded: the step's, or the fault's default.
func TestAmountIsRecorded(t *testing.T) {
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

// clockFromNow is a clock with time 0 now.
func clockFromNow() *stalls.Clock {
	start := time.Now()
	return &stalls.Clock{History: func() time.Duration { return time.Since(start) }}
}

// TestNextWaiterIsTaken: a waiter that was killed is one until its end is noticed, so a second crash of a waiter waits
// for another one. A random step does not wait.
func TestNextWaiterIsTaken(t *testing.T) {
	row, err := faults.Lookup("client-crash")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		n := &nemesis{clock: clockFromNow(), track: newTracker(2, []string{"k"}), maxDown: -1}
		for i := range 2 {
			n.track.add(history.Event{F: history.Acquire, Key: "k", Type: history.Invoke, Process: history.Process(i)})
		}
		step := scenarios.Step{Fault: "client-crash", Target: "waiter"}
		first, why := n.aim(t.Context(), row, step, n.track)
		if why != "" || first.target != "client:0" {
			t.Fatalf("%+v: %s", first, why)
		}
		if _, why := n.aim(t.Context(), row, scenarios.Step{Fault: "client-crash", Target: "waiter", Most: 1}, n.track); why == "" {
			t.Error("a random step took a client that is being killed")
		}
		go func() {
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // virtual time
			n.track.add(history.Event{F: history.Crash, Type: history.Info, Process: history.Process(0)})
		}()
		second, why := n.aim(t.Context(), row, step, n.track)
		if why != "" || second.target != "client:1" {
			t.Errorf("%+v: %s", second, why)
		}
	})
}

// lossy is an injection that loses bytes: lost says how many it has lost by now.
type lossy struct{ lost func() int }

func (l lossy) Observe(context.Context) (string, error) {
	return fmt.Sprintf("%d bytes lost", l.lost()), nil
}

func (lossy) Heal(context.Context) (string, error) { return "healed", nil }

// TestFaultThatMissesAndThenHits: the bytes that a fault in force loses belong first to no request, and then to the
// request that it must hit. Nothing is lost after it was healed.
func TestFaultThatMissesAndThenHits(t *testing.T) {
	for name, heal := range map[string]time.Duration{"in force": 4 * time.Second, "healed": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				begin := time.Now()
				n := &nemesis{
					time: backend.RealTime{}, clock: clockFromNow(), maxDown: -1, track: newTracker(1, []string{"k"}),
					record: history.NewRecorder(&out, func() time.Duration { return time.Since(begin) }),
				}
				a := &active{id: 1, name: "reply-lost", target: "client:0", hits: history.Acquire}
				a.injection = lossy{func() int { // 17 bytes that are no reply, then an acquire's
					if time.Since(begin) < 2*time.Second {
						return 17
					}
					n.track.add(history.Event{Type: history.Invoke, F: history.Acquire, Key: "k"})
					return 40
				}}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(heal, func() { n.healOne(ctx, a) })
				time.AfterFunc(10*time.Second, cancel)
				n.observe(ctx, a)
				text := out.String()
				if !strings.Contains(text, "17 bytes lost, but client:0 had no request in flight") {
					t.Errorf("the miss is not recorded:\n%s", text)
				}
				hit := strings.Contains(text, `"phase":"effect"`) && strings.Contains(text, `"40 bytes lost"`)
				if hit != (name == "in force") {
					t.Errorf("%s: effect %v:\n%s", name, hit, text)
				}
			})
		})
	}
}
