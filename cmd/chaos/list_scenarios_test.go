package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/listing"
	"github.com/lockchaos/lockchaos/internal/testkit/golden"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/scenarios"
)

// TestListScenarios: stories are listed by default, probes with --all, and every flag leaves out scenarios.
func TestListScenarios(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		flags      string
		with, less string // names that are listed, and names that are not
	}{
		{"", "failover gc-pause zk-failover", "waiters-three mixed-fair"},
		{"--all", "failover waiters-three mixed-fair", ""},
		{"--lock zk-*", "zk-failover", "failover etcd-failover"},
		{"--lock set-nx-px", "mixed-libraries", "failover"}, // of some of its clients
		{"--topology sentinel|quorum", "failover redlock-always", "gc-pause"},
		{"--fault pause-client", "gc-pause", "failover"},
		{"--fault jitter", "swarm-single", "failover"}, // drawn at random
		{"--verdict unsafe", "failover gc-pause", "failover-wait-all"},
		{"--verdict safe --topology sentinel", "failover-wait-all", "failover gc-pause"},
		{"--all --lock fair --fault client-crash", "fair-dead-first fair-dead-waiter", "mixed-fair"},
	} {
		args := append([]string{"list", "scenarios"}, strings.Fields(tt.flags)...)
		code, stdout, stderr := chaos(args...)
		if code != exitSafe || strings.Contains(stderr, "--all also lists") == strings.Contains(tt.flags, "--all") {
			t.Errorf("%s: exit code %d, %s", tt.flags, code, stderr)
		}
		var items []listing.Item
		if _, text, _ := chaos(append(args, "--json")...); json.Unmarshal([]byte(text), &items) != nil {
			t.Fatalf("%s: not JSON: %s", tt.flags, text)
		}
		var names []string
		for _, i := range items {
			names = append(names, i.Name)
			if !strings.Contains(stdout, "  "+i.Name+"  ") {
				t.Errorf("%s: %s is in JSON alone", tt.flags, i.Name)
			}
		}
		for _, name := range strings.Fields(tt.with) {
			if !slices.Contains(names, name) {
				t.Errorf("%s: %s is missing", tt.flags, name)
			}
		}
		for _, name := range strings.Fields(tt.less) {
			if slices.Contains(names, name) {
				t.Errorf("%s: %s is listed", tt.flags, name)
			}
		}
	}
}

// TestListMistakes: a flag of the list of scenarios is refused elsewhere, and so are a pattern that is none and a name
// that does not exist.
func TestListMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"faults --lock redlock":       "only the list of scenarios has",
		"scenarios --lock a,b":        "lock: \"a,b\" is not a pattern of names",
		"scenarios --topology [a":     "invalid pattern",
		"scenarios --lock redlok":     "--lock: unknown lock \"redlok\" (did you mean redlock?)",
		"scenarios --topology clster": "(did you mean cluster?)",
		"scenarios --fault kil":       "(did you mean kill?)",
		"scenarios --verdict unsaf":   "(did you mean unsafe?)",
	} {
		if code, _, stderr := chaos(append([]string{"list"}, strings.Fields(args)...)...); code != exitUsage ||
			!strings.Contains(stderr, want) {
			t.Errorf("list %s: exit code %d, %q, want %q", args, code, stderr, want)
		}
	}
}

// TestScenarioTables: docs/reference/scenarios.md lists stories by chapter and probes by family.
func TestScenarioTables(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	all, err := scenarios.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, s := range all {
		rows[s.Name] = fmt.Sprintf("| %s | %s | %s on %s | %s |\n", s.Name, s.Summary, s.LockText(), s.Topology.Kind,
			s.Expect.Text())
	}
	golden.Block(t, "../../docs/reference/scenarios.md", tableBegin, "<!-- end -->", func(string) string {
		return catalogText(t, rows)
	})
}

const (
	tableBegin = "<!-- scenarios: generated: go test ./cmd/chaos -run TestScenarioTables -update -->\n"
	tableHead  = "| scenario | what happens | lock | expected |\n| --- | --- | --- | --- |\n"
)

// catalogText is the catalog as Markdown; rows are the rows of all scenarios.
func catalogText(t *testing.T, rows map[string]string) string {
	t.Helper()
	var b strings.Builder
	chapter := ""
	for _, e := range scenarios.Stories() {
		if e.Group != chapter {
			if chapter != "" {
				b.WriteString("\n")
			}
			i := slices.IndexFunc(scenarios.Chapters(), func(c scenarios.Chapter) bool { return c.Name == e.Group })
			fmt.Fprintf(&b, "### %s\n\n%s", scenarios.Chapters()[i].Title, tableHead)
			chapter = e.Group
		}
		b.WriteString(rows[e.Name])
	}
	families, err := scenarios.Families()
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n### Probes\n\n| family | about | probes |\n| --- | --- | --- |\n")
	for _, f := range families {
		names := format.Texts(f.Rows, func(r scenarios.Row) string { return r.Name })
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.Name, f.About, strings.Join(names, ", "))
	}
	return b.String()
}
