package evaluation

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/evaluation/tally"
)

// TestDiff: a new finding of the lock is worse, unless it is accepted; one of any lock of its kind is not.
func TestDiff(t *testing.T) {
	finding := func(own bool, cause, accepted string) Finding {
		return Finding{Own: own, Cause: cause, Property: checker.Exclusion, Accepted: accepted, Sentence: "two held `k|`",
			Runs: 3, Of: 10, Seen: []tally.Seen{{Scenario: "mixed", Runs: 2, Of: 5}, {Scenario: "gc-pause", Runs: 1, Of: 1}}}
	}
	report := func(findings ...Finding) Report {
		r := Report{Format: Format, Result: tally.Result{Findings: findings, Runs: tally.Runs{All: 10, Safe: 7, Unsafe: 3}}}
		if len(findings) == 0 {
			r.Held = []tally.Held{{Property: checker.Exclusion, Runs: 10, Text: "90 holds"}}
		}
		return r
	}
	stolen, common := finding(true, "stolen", ""), finding(false, "stolen", "")
	for _, test := range []struct {
		name          string
		before, after Report
		kinds         []ChangeKind
		worse         bool
	}{
		{"nothing", report(), report(), nil, false},
		{"new", report(), report(stolen), []ChangeKind{New}, true},
		{"accepted", report(), report(finding(true, "stolen", "ann until 2026-12-31")), []ChangeKind{New}, false},
		{"any lock", report(), report(common), []ChangeKind{New}, false},
		{"the lock's own now", report(common), report(stolen), []ChangeKind{New, Gone}, true},
		{"gone", report(stolen), report(), []ChangeKind{Gone}, false},
		{"same", report(stolen), report(stolen), []ChangeKind{Same}, false},
		{"order", report(common, finding(true, "zombie-renewal", "")), report(common, stolen), []ChangeKind{New, Gone, Same},
			true},
	} {
		dirs := [2]string{t.TempDir(), t.TempDir()}
		for i, r := range []Report{test.before, test.after} {
			if err := r.Write(dirs[i]); err != nil {
				t.Fatal(err)
			}
		}
		d, err := DiffOf(dirs[0], filepath.Join(dirs[1], JSONFile))
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Findings) != len(test.kinds) || d.Worse != test.worse {
			t.Errorf("%s: %+v, want %v, worse %t", test.name, d.Findings, test.kinds, test.worse)
			continue
		}
		for i, c := range d.Findings {
			if c.Kind != test.kinds[i] {
				t.Errorf("%s: change %d is %s, want %s", test.name, i, c.Kind, test.kinds[i])
			}
		}
		if test.name != "new" {
			continue
		}
		var b bytes.Buffer
		if err := d.Markdown(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`| **new** | your lock: stolen | in no run | in 2 of 5 runs of mixed, and in 1 of the 5 others | two held k\| |`,
			"| exclusion | 10 runs: 90 holds | no |",
		} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("the text lacks %q:\n%s", want, b.String())
			}
		}
	}
	if _, err := DiffOf(t.TempDir(), t.TempDir()); err == nil {
		t.Error("an empty directory is a test")
	}
}
