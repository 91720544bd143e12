package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBadOverrides(t *testing.T) {
	var got strings.Builder
	for _, set := range []string{
		"", "workload={kind: semaphore}", "workload={kind: readers-writer}", "workload={permits: 3}",
		"duration", "=5s", "duration=", "duration=[", "workload.clinets=3", "name.x=1", "workload..clients=3", ".=1",
		"workload.clients=many", "lock=&a b", "about=" + strings.Repeat("x", maxText),
		"options=" + strings.Repeat("[", 40), "faults.0.after=1s", "duration=1s\n---\n2s",
		"faults.fault=kill", "faults[1].fault=kill", "faults[-1].fault=kill", "faults[x].fault=kill", "faults[0].fault=kil",
		"faults[0].fault.name=kill", "duration[0]=3s", "faults[0]=3", "[0]=3",
		"nosuch=null", "workload.clinets=null", "faults[0].target.x=", "twin.sets=~", "expect.exept.leak=null",
		"nosuch.x=null",
	} {
		s, err := Parse([]byte(good("faults: [{fault: pause-node}]\n")), Sets([]string{set})...)
		if err == nil {
			t.Errorf("--set %q: no error: %+v", set, s)
			continue
		}
		if len(set) > 100 {
			set = set[:20] + "…"
		}
		text := err.Error()
		if at := strings.Index(text, strings.Repeat("x", 100)); at >= 0 {
			text = text[:at] + "…" + strings.TrimLeft(text[at:], "x")
		}
		fmt.Fprintf(&got, "== --set %q\n%s\n\n", set, text)
	}
	goldenErrors(t, "set.golden", got.String())
	if _, err := Parse(nil, Sets([]string{"name=x"})...); err == nil {
		t.Error("no error for an empty scenario with a name")
	}
	if _, err := Parse([]byte("null"), Sets([]string{"name=x"})...); err == nil {
		t.Error("no error for null with a name")
	}
}

func TestOverrides(t *testing.T) {
	text := good("faults: [{fault: pause-node, for: 1s}, {random: {of: [kill], every: 2s}}]\n")
	s, err := Parse([]byte(text), Sets([]string{
		"faults[0].fault=kill", "faults[0].target=n2", "faults[1].random.of[0]=restart",
	})...)
	if err != nil {
		t.Fatal(err)
	}
	steps := []Step{
		{Fault: "kill", Target: "n2", For: time.Second}, {Random: &Random{Of: []string{"restart"}, Every: 2 * time.Second}},
	}
	if diff := cmp.Diff(steps, s.Faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	s, err = Load("gc-pause", Sets([]string{
		"workload.clients=7", "duration=9s", "faults=[]", "topology.options.appendonly=yes", "options={poll: 1s}", "expect=null",
		"workload.think=null", "topology.options.save=null", "twin.set=null", "expect.except.leak=null", "thresholds=~",
	})...)
	if err != nil {
		t.Fatal(err)
	}
	before, err := Load("gc-pause")
	if err != nil {
		t.Fatal(err)
	}
	want := before
	want.Workload.Clients, want.Duration, want.Faults, want.Expect = 7, 9*time.Second, []Step{}, Expect{}
	want.Topology.Options, want.Options = map[string]string{"appendonly": "yes"}, map[string]string{"poll": "1s"}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestKeysCanBeRemoved: null is accepted for every key, with an entry of a list and of a map as well.
func TestKeysCanBeRemoved(t *testing.T) {
	paths := []string{"topology.options.save", "options.poll", "locks[0].options.poll", "expect.except.leak",
		"expect.except.leak.because", "thresholds[0]", "twin.set[1]"}
	for _, k := range Keys() {
		paths = append(paths, strings.ReplaceAll(k.Path, "[]", "[0]"))
	}
	for _, path := range paths {
		if err := mayHave(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
