package style

import (
	"strings"
	"testing"
)

const module = "github.com/lockchaos/lockchaos/"

// imports is the direction of imports: what a folder may use of the project. A
// folder that is not in it must be added, with a reason, in review.
var imports = map[string][]string{
	"history":                 {"history/edn"},
	"history/edn":             {},
	"lock":                    {},
	"lock/historic":           {},
	"lock/locktest":           {},
	"checker":                 {"history"},
	"internal/cluster":        {"client", "history"},
	"internal/cluster/gate":   {"internal/cluster", "internal/cluster/pubsub"},
	"internal/cluster/pubsub": {},
	"internal/cluster/process": {"internal/cluster", "internal/cluster/gate", "client", "history", "internal/child",
		"internal/ledger",
		"internal/lossydisk"},
	"internal/cluster/docker": {"internal/cluster", "internal/cluster/process", "internal/child", "internal/ledger"},
	"internal/cluster/sim": {"internal/cluster", "internal/cluster/pubsub", "internal/cluster/sim/engine", "client",
		"history"},
	"internal/cluster/sim/engine": {},
	"internal/cluster/sim/bubble": {},
	"client":                      {"history", "lock", "lock/historic"},
	"faults":                      {"client", "internal/cluster", "history"},
	"workloads":                   {"client", "history"},
	"scenarios":                   {"checker", "client", "internal/cluster", "faults", "workloads", "internal/nearest"},
	"reports":                     {"checker", "internal/cluster", "history", "internal/rundir"},
	"internal/child":              {},
	"internal/format":             {},
	"internal/explore":            {"checker", "history", "scenarios", "internal/child"},
	"internal/ledger":             {"internal/child"},
	"internal/lossydisk":          {},
	"internal/nearest":            {},
	"internal/rundir":             {"checker", "internal/cluster", "history"},
	"internal/style":              {},
	"internal/runner":             {"*"},
	"cmd/chaos":                   {"*"},
	"simtest":                     {"checker", "client", "scenarios", "internal/rundir", "internal/runner"},
	"bench":                       {"*"},
}

// never holds also where anything may be imported.
var never = map[string][]string{
	"internal/runner": {"reports", "cmd/chaos", "simtest"},
}

// leaves are packages that every folder but lock may use.
var leaves = []string{"internal/format"}

func TestImportsGoOneWay(t *testing.T) {
	for _, f := range goFiles(t) {
		allowed, known := imports[f.folder()]
		if !known {
			if !f.isTest() {
				t.Errorf("%s: the folder is not in the table of imports", f.path)
			}
			continue
		}
		for _, spec := range f.ast.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			name, ours := strings.CutPrefix(path, module)
			if !ours || f.isTest() {
				continue
			}
			if !among(name, append(allowed, leaves...)) || among(name, never[f.folder()]) {
				t.Errorf("%s imports %s: not one of %v", f.path, name, allowed)
			}
		}
	}
}

func among(name string, list []string) bool {
	for _, n := range list {
		if n == "*" || n == name {
			return true
		}
	}
	return false
}

// TestLockStandsAlone: package lock is for programs that know nothing of the harness.
func TestLockStandsAlone(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.folder() != "lock" || f.isTest() {
			continue
		}
		for _, spec := range f.ast.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if strings.Contains(path, ".") && !strings.HasPrefix(path, "github.com/redis/go-redis/") {
				t.Errorf("%s imports %s", f.path, path)
			}
		}
	}
}

func TestNoPackageIsCalledUtil(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, banned := range []string{"util", "utils", "common", "shared", "lib", "helpers", "misc", "base", "types"} {
			if f.ast.Name.Name == banned {
				t.Errorf("%s: package %s says nothing", f.path, banned)
			}
		}
	}
}
