package scenarios

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// TestCatalogIsComplete: every file is in the catalog, each name once, and a key of a base is in use.
func TestCatalogIsComplete(t *testing.T) {
	stories, err := filepath.Glob("stories/*/*")
	if err != nil || len(stories) != len(Stories()) {
		t.Errorf("%d files of stories, %d in the catalog (%v)", len(stories), len(Stories()), err)
	}
	families, err := Families()
	if err != nil {
		t.Fatal(err)
	}
	probes, err := filepath.Glob("probes/*")
	if err != nil || len(probes) != len(families) {
		t.Errorf("%d files of probes, %d families (%v)", len(probes), len(families), err)
	}
	names := slices.Sorted(slices.Values(Names()))
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) || len(names) < 300 {
		t.Errorf("%d names, %d of them different", len(names), len(unique))
	}
	for _, f := range families {
		if f.About == "" || len(f.Rows) < 2 {
			t.Errorf("family %s has %d rows, and is about %q", f.Name, len(f.Rows), f.About)
		}
	}
}

// TestRowsOfProbes: a row changes keys of sections of its base, and replaces everything else.
func TestRowsOfProbes(t *testing.T) {
	f := Family{Base: map[string]any{
		"lock": "reentrant", "topology": map[string]any{"kind": "single"}, "duration": "1s",
		"workload": map[string]any{"clients": 2, "keys": 3}, "faults": []any{map[string]any{"fault": "kill"}},
	}}
	for _, with := range []map[string]any{
		{"workload": map[string]any{"clients": 7}, "lock": "fair", "faults": []any{},
			"options": map[string]any{"poll": "1s"}},
		{}, // a row leaves the base as it was
	} {
		text, err := f.text(Row{Name: "x", Summary: "it's: #1", About: "a\n\nb\n", With: with})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		want := Scenario{Name: "x", Summary: "it's: #1", About: "a\n\nb\n", Lock: "reentrant", Duration: time.Second,
			Topology: cluster.Topology{Kind: "single"}, Workload: workload.Params{Clients: 2, Keys: 3},
			Faults: []Step{{Fault: "kill"}}}
		if len(with) > 0 {
			want.Workload.Clients, want.Lock, want.Faults = 7, "fair", []Step{}
			want.Options = map[string]string{"poll": "1s"}
		}
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
