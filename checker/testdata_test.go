package checker_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

var update = flag.Bool("update", false, "write what was found into testdata/*.history")

const separator = "----\n"

// TestHistoriesOfTestdata judges the histories of testdata: each file is a history, ---- and its judgement.
func TestHistoriesOfTestdata(t *testing.T) {
	files, err := filepath.Glob("testdata/*.history")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d histories found: %v", len(files), err)
	}
	convicted := make(map[checker.Property]bool)
	acquitted := make(map[checker.Property]bool)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".history"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			recording, want, _ := strings.Cut(string(text), separator)
			h, err := history.ReadText(strings.NewReader(recording), file)
			if err != nil {
				t.Fatal(err)
			}
			j := checker.Judge(h, recordingOptions(t, recording))
			for _, r := range j.Results {
				bad := r.Outcome == checker.Violated || (r.Property == checker.Bite && r.Outcome == checker.Undecided)
				convicted[r.Property] = convicted[r.Property] || bad
				acquitted[r.Property] = acquitted[r.Property] || r.Outcome == checker.Holds
				checkEvidence(t, h, r)
			}
			got := render(j)
			if *update {
				if err := os.WriteFile(file, []byte(recording+separator+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("judgement (-want +got):\n%s", diff)
			}
		})
	}
	for _, s := range checker.Catalog() {
		if !convicted[s.Name] || !acquitted[s.Name] {
			t.Errorf("%s: no history that it convicts (%v) or none that it acquits (%v)",
				s.Name, convicted[s.Name], acquitted[s.Name])
		}
	}
}

// notApplicable has, for each property, a history in which "not applicable" would hide a violation, and one in which it
// is right.
func notApplicable() map[checker.Property][2]string {
	return map[checker.Property][2]string{
		checker.Exclusion:      {"na-exclusion", "na-exclusion-clean"},
		checker.LeaseExclusion: {"na-exclusion", "na-exclusion-clean"},
		checker.Permits:        {"na-permits", "na-permits-clean"},
		checker.ReadersWriter:  {"na-readers-writer", "na-readers-writer-clean"},
		checker.Fencing:        {"fencing-no-token-at-all", "fencing-no-token-at-all-clean"},
		checker.Damage:         {"na-damage", "na-damage-clean"},
		checker.Honesty:        {"na-honesty", "na-honesty-clean"},
		checker.HoldCount:      {"na-hold-count", "na-hold-count-clean"},
		checker.Recovery:       {"recovery-never-free-unknown", "recovery-paused-clean"},
		checker.WakeUp:         {"na-wake-up", "na-wake-up-clean"},
		checker.Order:          {"na-order", "na-order-clean"},
		checker.Leak:           {"na-leak", "na-leak-clean"},
		checker.Latch:          {"na-latch", "na-latch-clean"},
		checker.Linearizable:   {"na-linearizable", "na-linearizable-clean"},
	}
}

// TestNotApplicableHidesNothing: a property is "not applicable" only to histories that it has nothing to say about.
func TestNotApplicableHidesNothing(t *testing.T) {
	pairs := notApplicable()
	for _, s := range checker.Catalog() {
		files, has := pairs[s.Name]
		if s.Name == checker.Bite { // it applies to every history
			continue
		}
		if !has {
			t.Errorf("%s: no pair of histories", s.Name)
			continue
		}
		for i, file := range files {
			text, err := os.ReadFile(filepath.Join("testdata", file+".history"))
			if err != nil {
				t.Fatal(err)
			}
			recording, _, _ := strings.Cut(string(text), separator)
			h, err := history.ReadText(strings.NewReader(recording), file)
			if err != nil {
				t.Fatal(err)
			}
			j := checker.Judge(h, recordingOptions(t, recording))
			at := slices.IndexFunc(j.Results, func(r checker.Result) bool { return r.Property == s.Name })
			if got := j.Results[at].Outcome; (got == checker.NotApplicable) != (i == 1) || got == checker.Holds {
				t.Errorf("%s is %s in %s", s.Name, got, file)
			}
		}
	}
}

// recordingOptions reads the options of a history from a line that begins with #!, such as "#! fair bypass=1
// slack=500ms permits=2".
func recordingOptions(t *testing.T, recording string) (o checker.Options) {
	t.Helper()
	for line := range strings.Lines(recording) {
		fields, is := strings.CutPrefix(line, "#!")
		if !is {
			continue
		}
		for _, field := range strings.Fields(fields) {
			name, value, _ := strings.Cut(field, "=")
			var err error
			switch name {
			case "fair":
				o.Fair = true
			case "prefers-writers":
				o.PrefersWriters = true
			case "refuses-upgrade":
				o.RefusesUpgrade = true
			case "refuses-excess":
				o.RefusesExcess = true
			case "repeats":
				o.Repeats = true
			case "frugal":
				o.Frugal = true
			case "counts":
				o.Counts = true
			case "overtakes":
				o.Overtakes = true
			case "fenced":
				o.Fenced = true
			case "renews":
				o.RenewsItself = true
			case "reports-loss":
				o.ReportsLoss = true
			case "kind":
				o.LockKind = checker.LockKind(value)
			case "only":
				o.Only = append(o.Only, checker.Property(value))
			case "bypass":
				o.MaxBypass, err = strconv.Atoi(value)
			case "away":
				o.MayBeDown, err = strconv.Atoi(value)
			case "inline":
				o.QueueDelay, err = time.ParseDuration(value)
			case "poll":
				o.Poll, err = time.ParseDuration(value)
			case "slack":
				o.Slack, err = time.ParseDuration(value)
			case "permits":
				var n int
				n, err = strconv.Atoi(value)
				o.Permits = map[string]int{"": n}
			default:
				t.Fatalf("no option is called %q", name)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return o
}

// checkEvidence checks the form of every violation: evidence of two or three events of the history, a rule, a text, and
// an end that is not before the start.
func checkEvidence(t *testing.T, h *history.History, r checker.Result) {
	t.Helper()
	for _, v := range r.Violations {
		different := len(slices.Compact(slices.Sorted(slices.Values(v.Events))))
		if different < 2 || different > 3 || different != len(v.Events) {
			t.Errorf("%s: the proof is the events %v", r.Property, v.Events)
		}
		for _, e := range v.Events {
			if e < 0 || e >= h.Events {
				t.Errorf("%s: event %d is not in the history", r.Property, e)
			}
		}
		if v.Rule == "" || v.Text == "" || len(v.Clients) == 0 || len(v.Clients) != len(v.Owners) || v.End < v.Start {
			t.Errorf("%s: incomplete violation %+v", r.Property, v)
		}
	}
}

func render(j checker.Judgement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", j.Verdict, j.Sentence)
	for _, r := range j.Results {
		fmt.Fprintf(&b, "%s %s: %s\n", r.Property, r.Outcome, r.Summary)
		for _, v := range r.Violations {
			fmt.Fprintf(&b, "  [%s] clients %v, events %v, %v-%v: %s\n", v.Class, v.Clients, v.Events, v.Start,
				v.End, v.Text)
		}
	}
	return b.String()
}
