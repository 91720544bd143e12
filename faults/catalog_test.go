package faults

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// classes are the classes of docs/reference/history.md.
var classes = []string{
	history.FaultKills, history.FaultRestarts, history.FaultForgets, history.FaultPauses, history.FaultDelays,
	history.FaultDrops, history.FaultCuts, history.FaultRefuses, history.FaultDuplicates, history.FaultRemoves,
	history.FaultPlants, history.FaultSkews, history.FaultMoves, history.FaultPromotes, history.FaultDemotes,
}

// TestCatalog: every row is complete, has files of its own and can be looked up.
func TestCatalog(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range Catalog() {
		t.Run(row.Name, func(t *testing.T) {
			if seen[row.Name] {
				t.Error("the name is used twice")
			}
			seen[row.Name] = true
			if !strings.HasSuffix(row.Doc, ".") || strings.Count(row.Doc, ". ") > 0 {
				t.Errorf("Doc is not one sentence: %q", row.Doc)
			}
			if row.Source == "" || len(row.Targets) == 0 || row.Inject == nil || row.Lacks == nil {
				t.Errorf("no source, targets, Inject or Lacks: %+v", row)
			}
			if !slices.Contains(classes, row.Class) || row.Object == "" || row.Verb == "" {
				t.Errorf("no class of docs/reference/history.md, object or verb: %q, %q, %q", row.Class, row.Object, row.Verb)
			}
			for _, file := range []string{".go", "_test.go"} {
				name := strings.ReplaceAll(row.Name, "-", "_") + file
				if _, err := os.Stat(name); err != nil {
					t.Errorf("no file of its own: %v", err)
				}
			}
			for _, target := range row.Targets {
				if err := row.CheckTarget(string(target)); err != nil {
					t.Errorf("it refuses its own target: %v", err)
				}
			}
			if err := row.CheckTarget("the moon"); err == nil {
				t.Error("it takes the target \"the moon\"")
			}
			if found, err := Lookup(row.Name); err != nil || found.Name != row.Name {
				t.Errorf("Lookup = %q, %v", found.Name, err)
			}
		})
	}
	if _, err := Lookup("nothing"); err == nil {
		t.Error("found a fault called nothing")
	}
}

// on reports whether the row is meant for that kind of topology.
func (s Spec) on(kind string) bool {
	if s.OnlyRedis != "" && !(cluster.Topology{Kind: kind}).Redis() {
		return false
	}
	if s.NotOn[kind] != "" || kind == cluster.None && !s.WholeProcess {
		return false
	}
	return s.Topologies == nil || slices.Contains(s.Topologies, kind)
}

// TestCheckNamesWhatIsMissing: every row runs on its topologies if the backend has every ability, and names the missing
// ability if it has none.
func TestCheckNamesWhatIsMissing(t *testing.T) {
	for _, row := range Catalog() {
		for _, kind := range cluster.Topologies() {
			err := row.Check(newFake(kind.Name))
			if possible := row.on(kind.Name); possible != (err == nil) {
				t.Errorf("%s on %s: %v", row.Name, kind.Name, err)
			}
			if err != nil && (row.WrongTopology(kind.Name) == "" || !strings.Contains(err.Error(), row.Name)) {
				t.Errorf("%s on %s: %v does not give the reason", row.Name, kind.Name, err)
			}
		}
		kind := cluster.Single
		if row.Topologies != nil {
			kind = row.Topologies[0]
		}
		err := row.Check(planned{cluster.Topology{Kind: kind}})
		if row.Lacks(planned{}) != "" && (err == nil || !strings.Contains(err.Error(), "this backend cannot")) {
			t.Errorf("%s on a cluster without abilities: %v", row.Name, err)
		}
	}
}

// asymmetric are the faults that do not undo as many things as they did; see their own tests.
var asymmetric = []string{
	"failover", "cluster-failover", "cluster-failover-force", "cluster-takeover", "client-crash", "restart-empty",
	"key-deleted", "queue-deleted", "node-deleted", "flushall", "script-flush", "pubsub-cut", "eviction", "memory-full",
	"writes-refused",
	"foreign-data", "foreign-waiter", "manual-promotion",
	"rights-revoked", "subscribe-refused", "channel-refused", "scripts-refused", "snapshots-failing",
	"slot-migration", "busy-script", "connection-limit",
}

// waitForWork are the faults that wait for something to break.
var waitForWork = []string{
	"key-deleted", "queue-deleted", "node-deleted", "flushall", "pubsub-cut", "eviction", "foreign-data",
	"foreign-waiter", "writes-refused",
}

// TestEveryFaultUndoesWhatItDid: injected at its default target on a cluster with every ability, and healed twice, a
// fault undoes as much as it did.
func TestEveryFaultUndoesWhatItDid(t *testing.T) {
	for _, row := range Catalog() {
		kind := cluster.Sentinel
		if row.Topologies != nil {
			kind = row.Topologies[0]
		}
		f := newFake(kind)
		target, err := Resolve(t.Context(), f, clientState{holder: 1, waiter: 2}, row.PlannedTarget("", f.Topology()))
		if err != nil {
			t.Fatalf("%s: %v", row.Name, err)
		}
		in := inject(t, row, f.env(), target)
		broke := f.done()
		heals(t, in)
		undone := f.done()
		if len(broke) == 0 && !slices.Contains(waitForWork, row.Name) {
			t.Errorf("%s did nothing", row.Name)
		}
		if len(undone) != len(broke) && !slices.Contains(asymmetric, row.Name) {
			t.Errorf("%s did %q and undid %q", row.Name, broke, undone)
		}
	}
}
