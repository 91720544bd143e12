package draft

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/scenarios"
)

// TestDraftsAreScenarios: every answer that is offered for a draft makes a scenario: each lock on all of its
// topologies, and each fault on each topology that can have it.
func TestDraftsAreScenarios(t *testing.T) {
	names := append(adapters.Names(), client.ExecPrefix+`sh -c 'echo "#"'`)
	for _, row := range locks.Catalog() {
		names = append(names, row.Name)
	}
	faults := map[string]bool{} // the drafted ones, by topology and name
	for _, lock := range names {
		for _, topology := range (Draft{Lock: lock}).Topologies() {
			d := Draft{Name: "mine", Lock: lock, Topology: topology}
			parse(t, d)
			for _, fault := range d.Faults() {
				if !faults[topology+fault] {
					faults[topology+fault] = true
					d.Fault = fault
					parse(t, d)
				}
			}
		}
	}
	if len(faults) < 100 {
		t.Errorf("only %d faults on all topologies", len(faults))
	}
}

// parse checks a draft and reads its text, which must have the values of the draft.
func parse(t *testing.T, d Draft) {
	t.Helper()
	d.Holds = []string{"honesty", "leak"}
	if err := d.Check(); err != nil {
		t.Errorf("%+v: %v", d, err)
		return
	}
	s, err := scenarios.Parse([]byte(d.Text()))
	if err != nil {
		t.Errorf("%+v: %v\n%s", d, err, d.Text())
		return
	}
	fault := ""
	for _, step := range s.Faults {
		fault += step.Fault
	}
	if s.Name != d.Name || s.Lock != d.Lock || s.Topology.Kind != d.Topology || fault != d.Fault ||
		s.Expect.Except["leak"].Outcome != "holds" {
		t.Errorf("%+v was written as %+v", d, s)
	}
}

// TestDraftMistakes: the error names the wrong answer and the nearest valid one.
func TestDraftMistakes(t *testing.T) {
	for _, c := range []struct {
		draft Draft
		want  string
	}{
		{Draft{Name: "a b", Lock: "reentrant"}, `name "a b": "a b" cannot be a directory`},
		{Draft{Name: "a", Lock: "reentrent"}, "--lock reentrent: unknown lock \"reentrent\" (did you mean reentrant?)"},
		{Draft{Name: "a"}, "--lock : unknown lock"},
		{Draft{Name: "a", Lock: "redlock", Topology: "single"}, "--lock redlock: lock redlock does not run on"},
		{Draft{Name: "a", Lock: "exec:x", Topology: "sentry"}, "--topology sentry: unknown topology"},
		{Draft{Name: "a", Lock: "redlock", Fault: "failover"}, "--fault failover: fault failover: it needs topology"},
		{Draft{Name: "a", Lock: "redlock", Fault: "restart: 1\n#"}, "unknown fault"},
		{Draft{Name: "a", Lock: "redlock", Holds: []string{"exclusive"}}, "(did you mean exclusion?)"},
	} {
		if err := c.draft.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.draft, err, c.want)
		}
	}
}
