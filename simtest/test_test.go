package simtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/simtest"
)

// plantedBug is the variable that has TestOwnLock test a lock with a bug.
const plantedBug = "SIMTEST_BUG"

// TestOwnLock: a correct lock has no finding of its own, and the result lists the examined parts.
func TestOwnLock(t *testing.T) {
	c := simtest.Config{Time: 5 * time.Second, Out: t.TempDir()}
	r := simtest.Test(t, c, plainKind.lock(os.Getenv(plantedBug)))
	if n := r.Outcomes(checker.Exclusion); n[checker.Holds] == 0 {
		t.Errorf("exclusion holds in no run: %v", n)
	}
	if o, ok := r.First(checker.Safe); !ok || o.Dir == "" {
		t.Errorf("no safe run is kept: %+v", o)
	}
	for _, f := range r.Findings {
		if _, err := os.Stat(filepath.Join(f.Dir, "history.jsonl")); err != nil {
			t.Errorf("the run with %s is not kept: %v", f.Name, err)
		}
		if f.YAML == "" {
			continue
		}
		again := simtest.Run(t, simtest.Config{Scenario: f.File, First: f.Seed, Seeds: 1}, plainKind.lock(os.Getenv(plantedBug)))
		if again.Outcomes(f.Property)[checker.Violated] == 0 {
			t.Errorf("the smallest scenario does not repeat %s: %+v", f.Name, again)
		}
	}
}

// TestTimeOfASlowMachine: a machine on which the time suffices for no run makes as many as a result needs.
func TestTimeOfASlowMachine(t *testing.T) {
	r := simtest.Test(t, simtest.Config{Time: time.Nanosecond}, plainKind.lock(""))
	if n := len(r.Runs); n < 3 || n > 6 {
		t.Errorf("%d runs, want 3 to 6", n)
	}
}

// TestFindingsFail: a bug fails the sub-test with the name of its cause, which says how to repeat it.
func TestFindingsFail(t *testing.T) {
	test := exec.Command(os.Args[0], "-test.run=^TestOwnLock$", "-test.v")
	test.Env = append(os.Environ(), plantedBug+"=plain del")
	out, err := test.CombinedOutput()
	if err == nil {
		t.Errorf("the test of a lock that deletes the key of others passes")
	}
	for _, want := range []string{"--- FAIL: TestOwnLock/foreign-release", "change: Store a value that is unique",
		"repeat: simtest.Run(t, simtest.Config{"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q:\n%s", want, out)
		}
	}
	for _, unwanted := range []string{"does not repeat", "is not kept"} {
		if strings.Contains(string(out), unwanted) {
			t.Errorf("the output has %q:\n%s", unwanted, out)
		}
	}
}
