package suite

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/scenarios"
)

// TestFilter applies filters to the catalog.
func TestFilter(t *testing.T) {
	list, err := scenarios.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	chosen := func(text string) (names []string) {
		f, err := ParseFilter(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, s := range list {
			if f.Matches(Scenario{Arg: s.Name, Scenario: s}) {
				names = append(names, s.Name)
			}
		}
		return names
	}
	if n := len(chosen("")); n != len(list) {
		t.Errorf("no filter: %d of %d scenarios", n, len(list))
	}
	if got := chosen("failover|gc-pause"); !slices.Equal(got, []string{"failover", "gc-pause"}) {
		t.Errorf("two names: %v", got)
	}
	if got := chosen("redlock*,!redlock-jitter"); len(got) < 5 || slices.Contains(got, "redlock-jitter") {
		t.Errorf("a pattern and an exception: %v", got)
	}
	safe, unsafe := chosen("topology=sentinel,verdict=safe"), chosen("topology=sentinel,!verdict=safe")
	if len(safe) == 0 || !slices.Contains(unsafe, "failover") || slices.Contains(safe, "failover") {
		t.Errorf("safe with Sentinel: %v, others: %v", safe, unsafe)
	}
	if got := chosen("fault=pause-client,lock=reentrant,workload=mutex"); !slices.Contains(got, "gc-pause") {
		t.Errorf("three fields: %v", got)
	}
	for _, text := range []string{"color=red", "[", "name=", "failover,="} {
		if _, err := ParseFilter(text); err == nil {
			t.Errorf("%q is no filter", text)
		}
	}
}

// TestQuarantine: an exemption is in force until the end of its day, and is noted afterwards.
func TestQuarantine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "quarantine.yaml")
	read := func(text string) (Quarantine, error) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return ReadQuarantine(file, []string{"swarm"})
	}
	q, err := read("- {scenario: swarm, owner: team-locks, until: 2026-12-31, reason: 'issue 7'}\n")
	if err != nil {
		t.Fatal(err)
	}
	during, after := time.Date(2026, 12, 31, 23, 59, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := q.of("swarm", during); got != "team-locks until 2026-12-31" {
		t.Errorf("on the last day: %q", got)
	}
	if q.of("swarm", after) != "" || q.of("failover", during) != "" || len(q.expired(during)) != 0 {
		t.Error("it exempts too much")
	}
	if notes := q.expired(after); len(notes) != 1 || !strings.Contains(notes[0], "swarm (owner team-locks) expired on 2026-12-31") {
		t.Errorf("notes: %q", notes)
	}
	for _, text := range []string{
		"- {scenario: swram, owner: me, until: 2026-12-31}", "- {scenario: swarm, until: 2026-12-31}",
		"- {scenario: swarm, owner: me, until: tomorrow}", "- {scenario: swarm, owner: me, untli: 2026-12-31}", "- {scenario: swarm, owner: me}",
	} {
		if _, err := read(text + "\n"); err == nil {
			t.Errorf("accepted: %s", text)
		}
	}
}
