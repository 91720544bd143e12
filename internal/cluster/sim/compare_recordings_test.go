package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

var (
	liveRecordings = flag.Int("recordings", 1, "real clusters or ensembles to record; above 1: times are judged too")
	simulatedSeeds = flag.Int("recordings.seeds", 4, "how many simulated ones are compared with the recordings")
	keepRecordings = flag.Bool("recordings.keep", false, "write these recordings into testdata")
)

// seen is when each change was seen first in a recording: "n1 n4=master" at 45 ms.
func (r recorded) seen() map[string]int64 {
	first := map[string]int64{}
	for _, c := range r.Changes {
		key := c.node + " " + c.what
		if _, ok := first[key]; !ok {
			first[key] = c.ms
		}
	}
	return first
}

// compareEvents describes changes that are in every real recording and not in every simulated one, or in a simulated
// one and never in a real one; and, node by node, changes that came first in every real recording and later in a
// simulated one, or first in every simulated one and later in most real ones (few are simulated, and TCP reverses some
// pairs sometimes).
func compareEvents(live, simulated []recorded) (differences []string) {
	a, b := collect(live), collect(simulated)
	for _, what := range slices.Sorted(maps.Keys(union(a.count, b.count))) {
		// Whether a node notices a failure before it is notified of it is a matter of when its timer runs.
		notices := strings.HasSuffix(what, "failure=fail?") && a.count[what] > 0
		if !notices && a.count[what] == len(live) && b.count[what] < len(simulated) || a.count[what] == 0 {
			differences = append(differences, fmt.Sprintf("%q was seen in %d of %d real and %d of %d simulated recordings",
				what, a.count[what], len(live), b.count[what], len(simulated)))
		}
	}
	for _, pair := range slices.Sorted(maps.Keys(union(a.before, b.before))) {
		earlier, later, _ := strings.Cut(pair, " < ")
		back := later + " < " + earlier
		if a.before[pair] == len(live) && b.before[back] > 0 || b.before[pair] == len(simulated) && a.before[back] > len(live)/2 {
			differences = append(differences, fmt.Sprintf("%q before %q: %d of %d real and %d of %d simulated recordings; "+
				"after it: %d and %d", earlier, later, a.before[pair], len(live), b.before[pair], len(simulated),
				a.before[back], b.before[back]))
		}
	}
	return differences
}

// statistics is in how many recordings something was seen, and was seen before something else at the same node.
type statistics struct{ count, before map[string]int }

func collect(all []recorded) statistics {
	s := statistics{map[string]int{}, map[string]int{}}
	for _, r := range all {
		seen := r.seen()
		for a, at := range seen { // order does not matter: it counts
			s.count[a]++
			for b, then := range seen {
				if at < then && a[:2] == b[:2] {
					s.before[a+" < "+b]++
				}
			}
		}
	}
	return s
}

func union(a, b map[string]int) map[string]bool {
	all := map[string]bool{}
	for _, m := range []map[string]int{a, b} {
		for key := range m { // order does not matter: it fills a map
			all[key] = true
		}
	}
	return all
}

// bound is how long after one change, anywhere, another one is seen first, anywhere. From is empty for the start of the
// event.
type bound struct {
	event, from, to string
	min, max        int64 // milliseconds
}

// outOfBounds describes changes that took shorter or longer than they can.
func (r recorded) outOfBounds(bounds []bound) (wrong []string) {
	first := func(what string) (int64, bool) {
		for _, c := range r.Changes {
			if c.what == what || c.node+" "+c.what == what {
				return c.ms, true
			}
		}
		return 0, what == ""
	}
	for _, b := range bounds {
		if b.event != r.Event {
			continue
		}
		from, ok1 := first(b.from)
		to, ok2 := first(b.to)
		if took := to - from; !ok1 || !ok2 || took < b.min || took > b.max {
			wrong = append(wrong, fmt.Sprintf("%q to %q took %d ms (seen: %v, %v), want %d to %d",
				b.from, b.to, took, ok1, ok2, b.min, b.max))
		}
	}
	return wrong
}

// compareRecordings compares simulated recordings with real ones, event by event: the changes, their order, their
// times, and broken rules. breaks may be nil.
func compareRecordings(t *testing.T, live, simulated []recording, bounds []bound, breaks func(recorded) []string) {
	t.Helper()
	if len(live) < 10 {
		t.Errorf("%d real recordings, want 10 at least", len(live))
	}
	for i, e := range live[0].Events {
		a, b := eventsAt(live, i), eventsAt(simulated, i)
		for _, difference := range compareEvents(a, b) {
			t.Errorf("%s: %s", e.Event, difference)
		}
		for _, r := range slices.Concat(a, b) {
			wrong := r.outOfBounds(bounds)
			if breaks != nil {
				wrong = append(wrong, breaks(r)...)
			}
			for _, what := range wrong {
				t.Errorf("%s: %s", e.Event, what)
			}
		}
	}
}

func eventsAt(all []recording, i int) (list []recorded) {
	for _, r := range all {
		list = append(list, r.Events[i])
	}
	return list
}

// readRecordings reads a file of recordings, one a line.
func readRecordings(t *testing.T, file string) (all []recording) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for lines := json.NewDecoder(bytes.NewReader(data)); lines.More(); {
		var r recording
		if err := lines.Decode(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// recordSimulated records as many simulated clusters as the flag says, each with another seed.
func recordSimulated(t *testing.T, cfg sim.Config, one func(*world) (recording, error)) (all []recording) {
	t.Helper()
	for range *simulatedSeeds {
		cfg.Seed++
		simulate(t, cfg, func(w *world) {
			r, err := one(w)
			if err != nil {
				t.Errorf("seed %d: %v", cfg.Seed, err)
			}
			all = append(all, r)
		})
	}
	return all
}

// withReal runs f on real servers.
func withReal(t *testing.T, topology cluster.Topology, f func(*process.Cluster)) {
	t.Helper()
	withServers(t, process.Config{Topology: topology, Dir: t.TempDir()}, f)
}

// withServers calls f with real servers.
func withServers(t *testing.T, cfg process.Config, f func(*process.Cluster)) {
	t.Helper()
	c, err := process.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	f(c)
}

// keepLive records and judges as many real clusters as the flag says, and writes them to a file if that is wanted.
func keepLive(t *testing.T, file string, one func() (recording, error), judge func(recording)) {
	t.Helper()
	var kept bytes.Buffer
	for range *liveRecordings {
		r := recordLive(t, one)
		judge(r)
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		kept.Write(append(line, '\n'))
		if !*keepRecordings {
			continue
		}
		if err := os.WriteFile(file, kept.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// attempts is how often a recording is tried until one is undisturbed.
const attempts = 5

// recordLive records something real, again if the machine was too busy.
func recordLive(t *testing.T, one func() (recording, error)) recording {
	t.Helper()
	for attempt := 1; ; attempt++ {
		r, err := one()
		load, _ := os.ReadFile("/proc/loadavg")
		r.Load, _, _ = strings.Cut(string(load), " ")
		switch {
		case err == nil:
			return r
		case attempt == attempts && !errors.Is(err, errDisturbed):
			t.Fatal(err)
		case attempt == attempts:
			t.Skip("NOT RUN: ", err, ", load ", r.Load)
		}
		t.Log("again: ", err)
	}
}
