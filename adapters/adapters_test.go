package adapters_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/scenarios"
)

func catalog(t *testing.T) []adapters.Adapter {
	t.Helper()
	all, err := adapters.Catalog()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d adapters, %v", len(all), err)
	}
	return all
}

// TestAdaptersAreComplete: each describes itself, its locks and their expected outcomes.
func TestAdaptersAreComplete(t *testing.T) {
	var topologies []string
	for _, row := range cluster.Topologies() {
		topologies = append(topologies, row.Name)
	}
	for _, a := range catalog(t) {
		readme, err := os.ReadFile(filepath.Join(a.Library, "README.md"))
		if err != nil || !strings.Contains(string(readme), a.Version) {
			t.Errorf("%s: README.md does not name version %s (%v)", a.Library, a.Version, err)
		}
		if a.Language == "" || !strings.HasPrefix(a.Homepage, "https://") || len(a.Build)*len(a.Run)*len(a.Kinds) == 0 {
			t.Errorf("%s: incomplete: %+v", a.Library, a)
		}
		for _, k := range a.Kinds {
			if k.Doc == "" || len(k.Topologies) == 0 {
				t.Errorf("%s/%s: incomplete: %+v", a.Library, k.Name, k)
			}
			for _, name := range k.Topologies {
				if !slices.Contains(topologies, name) {
					t.Errorf("%s/%s: unknown topology %q", a.Library, k.Name, name)
				}
			}
		}
	}
}

// TestHousePromisesAreStatedByNoLibrary: a promise is portable as soon as a lock of another library states it.
func TestHousePromisesAreStatedByNoLibrary(t *testing.T) {
	var stated promise.Set
	for _, a := range catalog(t) {
		for _, k := range a.Kinds {
			stated |= k.Can
		}
	}
	for _, row := range promise.Catalog() {
		if row.House == stated.Has(row.Set) {
			t.Errorf("%s: house is %v, stated by an adapter is %v", row.Name, row.House, stated.Has(row.Set))
		}
	}
}

// TestExpectationsAreValid: each names a lock, a scenario that the lock runs in, an outcome, properties and a reason.
func TestExpectationsAreValid(t *testing.T) {
	outcomes := []string{"safe", "inconclusive", "violated", string(checker.BrokenPromise), string(checker.OutlivedLease)}
	for _, a := range catalog(t) {
		all, err := a.Expected()
		if err != nil {
			t.Error(err)
		}
		for _, e := range all {
			if _, err := scenarios.Load(e.Scenario, scenarios.Sets([]string{"lock='" + e.Lock + "'"})...); err != nil {
				t.Errorf("%s in %s: %v", e.Lock, e.Scenario, err)
			}
			for _, outcome := range strings.Split(e.Outcome, " or ") {
				if !slices.Contains(outcomes, outcome) {
					t.Errorf("%s in %s: unknown outcome %q", e.Lock, e.Scenario, outcome)
				}
			}
			for _, p := range e.Properties {
				if !slices.ContainsFunc(checker.Catalog(), func(s checker.Spec) bool { return string(s.Name) == p }) {
					t.Errorf("%s in %s: unknown property %q", e.Lock, e.Scenario, p)
				}
			}
			if e.Outcome != "safe" && e.Why == "" {
				t.Errorf("%s in %s is %s without a reason", e.Lock, e.Scenario, e.Outcome)
			}
		}
	}
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{
		"reentrant": "", "redis-py/lock": "", "exec:a/b c": "",
		"redis-py/lok": "redis-py has lock, lock-no-retry", "redis/lock": `unknown library "redis"`, "nothing": "unknown lock",
	} {
		row, err := adapters.Lookup(name)
		if want == "" && (err != nil || row.Name != name) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Lookup(%q) = %q, %v; want %q", name, row.Name, err, want)
		}
	}
	row, _ := adapters.Lookup("redis-py/lock")
	if len(row.Command) != 3 || row.Command[2] != "lock" || !filepath.IsAbs(row.Command[0]) || row.Open != nil {
		t.Errorf("the command of redis-py/lock is %q", row.Command)
	}
}

// TestMake: an adapter is built once, in a directory that its sources name, and a build that fails leaves it unbuilt.
func TestMake(t *testing.T) {
	t.Setenv("LOCKCHAOS_ADAPTERS", t.TempDir())
	a, err := adapters.Find("redsync")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Ready(); !errors.Is(err, adapters.ErrNotBuilt) || !strings.Contains(err.Error(), "chaos adapters build redsync") {
		t.Errorf("Ready before the build: %v", err)
	}
	a.Needs, a.Build = []string{"sh"}, [][]string{{"sh", "-c", "cat go.mod protocol.go client.go > built; exit 3"}}
	if err := a.Make(context.Background(), os.Stderr); err == nil || a.Ready() == nil {
		t.Errorf("a build that fails: %v, ready %v", err, a.Ready())
	}
	a.Build = [][]string{{"sh", "-c", "echo once >> {dir}/built"}}
	for range 2 {
		if err := a.Make(context.Background(), os.Stderr); err != nil || a.Ready() != nil {
			t.Fatal(err, a.Ready())
		}
	}
	dir, err := a.Dir()
	if err != nil {
		t.Fatal(err)
	}
	built, err := os.ReadFile(filepath.Join(dir, "built"))
	if strings.Count(string(built), "once\n") != 1 || !strings.Contains(string(built), "func serve(") || err != nil {
		t.Errorf("built is %q, %v", built, err)
	}
	a.Needs = []string{"no-such-toolchain"}
	if err := a.Make(context.Background(), os.Stderr); err == nil || !strings.Contains(err.Error(), "no-such-toolchain") {
		t.Errorf("without the toolchain: %v", err)
	}
}
