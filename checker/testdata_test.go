package checker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/testkit/golden"
	"github.com/lockchaos/lockchaos/promise"
)

const separator = "----\n"

// TestHistoriesOfTestdata judges the histories of testdata: each file is a history, ---- and its judgement. A property
// has a line there if, and only if, it applies to the history.
func TestHistoriesOfTestdata(t *testing.T) {
	convicted := make(map[checker.Property]bool)
	acquitted := make(map[checker.Property]bool)
	checker.EachOfTestdata(t, func(file, text string) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".history"), func(t *testing.T) {
			recording, _, _ := strings.Cut(text, separator)
			h, err := foreign.ReadText(strings.NewReader(recording), file)
			if err != nil {
				t.Fatal(err)
			}
			j := checker.Judge(h, recordingOptions(t, recording))
			for _, r := range j.Results {
				bad := r.Outcome == checker.Violated ||
					r.Property == checker.Exercised && r.Outcome == checker.Undecided
				convicted[r.Property] = convicted[r.Property] || bad
				acquitted[r.Property] = acquitted[r.Property] || r.Outcome == checker.Holds
				checkEvidence(t, h, r)
			}
			golden.File(t, file, recording+separator+render(j))
		})
	})
	for _, s := range checker.Catalog() {
		if !convicted[s.Name] || !acquitted[s.Name] {
			t.Errorf("%s: no history that it convicts (%v) or none that it acquits (%v)",
				s.Name, convicted[s.Name], acquitted[s.Name])
		}
	}
}

// notApplicable has, for each reason for which a property is not applicable, a history in which that would hide a
// violation, and one in which it is right. Exercised applies to every history, so that its only pair has no reason.
func notApplicable() map[checker.Property][][2]string {
	return map[checker.Property][][2]string{
		checker.Exclusion: {{"na-exclusion", "na-exclusion-clean"},
			{"na-exclusion-semaphore", "na-exclusion-semaphore-clean"}},
		checker.LeaseExclusion: {{"na-exclusion", "na-exclusion-clean"},
			{"na-exclusion-semaphore", "na-exclusion-semaphore-clean"}, {"na-lease-exclusion", "na-lease-exclusion-clean"}},
		checker.Permits: {{"na-permits", "na-permits-clean"}},
		checker.ReadersWriter: {{"na-readers-writer", "na-readers-writer-clean"},
			{"na-readers-writer-semaphore", "na-readers-writer-semaphore-clean"}},
		checker.Fencing: {{"fencing-no-token-at-all", "fencing-no-token-at-all-clean"},
			{"na-fencing", "fencing-no-token-at-all-clean"}},
		checker.Damage:    {{"na-damage", "na-damage-clean"}},
		checker.Honesty:   {{"na-honesty", "na-honesty-clean"}, {"na-honesty-owner", "na-honesty-clean"}},
		checker.HoldCount: {{"na-hold-count", "na-hold-count-clean"}, {"na-hold-count-lost", "na-hold-count-lost-clean"}},
		checker.Recovery: {{"recovery-never-free-unknown", "na-recovery-clean"}, {"na-recovery", "na-recovery-clean"},
			{"recovery-paused-clean", "na-recovery-clean"}, {"na-recovery-no-lease", "na-recovery-no-lease-clean"}},
		checker.WakeUp: {{"na-wake-up", "na-wake-up-clean"}},
		checker.Order: {{"na-order", "na-order-clean"}, {"na-order-owner", "na-order-clean"},
			{"order-overtaken", "order-overtaken-unfair-clean"}, {"order-reader-first", "na-order-writers-clean"},
			{"na-order-writers", "na-order-writers-clean"}},
		checker.Leak:         {{"na-leak", "na-leak-clean"}, {"leak-queue-while-held", "leak-queue-while-held-clean"}},
		checker.Latch:        {{"na-latch", "na-latch-clean"}},
		checker.Linearizable: {{"na-linearizable", "na-linearizable-clean"}},
		checker.Exercised:    {{"na-exercised", "na-exercised-clean"}},
	}
}

// TestNotApplicableHidesNothing: a property is "not applicable" only to histories that it has nothing to say about, and
// there is a pair of histories for each of its reasons.
func TestNotApplicableHidesNothing(t *testing.T) {
	pairs := notApplicable()
	for _, s := range checker.Catalog() {
		missing := make(map[string]bool) // reasons without a pair
		for _, reason := range checker.Absent(s.Name) {
			missing[reason] = true
		}
		if len(pairs[s.Name]) == 0 {
			t.Errorf("%s: no pair of histories", s.Name)
		}
		for _, files := range pairs[s.Name] {
			for i, file := range files {
				got := resultOf(t, file, s.Name)
				right := i == 1 && len(checker.Absent(s.Name)) > 0
				if (got.Outcome == checker.NotApplicable) != right || i == 0 && got.Outcome == checker.Holds {
					t.Errorf("%s is %s in %s: %s", s.Name, got.Outcome, file, got.Summary)
				}
				for reason := range missing {
					if got.Outcome == checker.NotApplicable && strings.Contains(got.Summary, reason) {
						delete(missing, reason)
					}
				}
			}
		}
		for reason := range missing {
			t.Errorf("%s is not applicable because %q: no pair of histories", s.Name, reason)
		}
	}
}

// TestNotApplicableHasReasons: no history of testdata has a property that is not applicable for a reason that the
// catalog does not list.
func TestNotApplicableHasReasons(t *testing.T) {
	for _, recording := range recordings(t) {
		for _, r := range recording.want {
			listed := slices.ContainsFunc(checker.Absent(r.Property), func(reason string) bool {
				return strings.Contains(r.Summary, reason)
			})
			if r.Outcome == checker.NotApplicable && !listed {
				t.Errorf("%s is not applicable to %s: %s", r.Property, recording.name, r.Summary)
			}
		}
	}
}

// resultOf judges a history of testdata by one property.
func resultOf(t *testing.T, file string, p checker.Property) checker.Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file+".history"))
	if err != nil {
		t.Fatal(err)
	}
	recording, _, _ := strings.Cut(string(text), separator)
	h, err := foreign.ReadText(strings.NewReader(recording), file)
	if err != nil {
		t.Fatal(err)
	}
	return *checker.Judge(h, recordingOptions(t, recording)).Result(p)
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
			name, value, hasValue := strings.Cut(field, "=")
			var err error
			switch name {
			case "foreign-lock":
				o.ForeignLock = true
			case "virtual-time":
				o.VirtualTime = true
			case "sim-priorities":
				o.SimPriorities = true
			case "shared":
				o.Shared = true
			case "kind":
				o.LockKind = checker.LockKind(value)
			case "only":
				o.Only = append(o.Only, checker.Property(value))
			case "bypass":
				o.MaxBypass, err = strconv.Atoi(value)
			case "report-delay":
				o.ReportDelay, err = time.ParseDuration(value)
			case "node-timeout":
				o.NodeTimeout, err = time.ParseDuration(value)
			case "max-hold":
				o.MaxHold, err = time.ParseDuration(value)
			case "away":
				o.MayBeDown, err = strconv.Atoi(value)
			case "inline":
				o.QueueDelay, err = time.ParseDuration(value)
			case "poll":
				o.Poll, err = time.ParseDuration(value)
			case "per-program":
				o.PerProgram, err = strconv.Atoi(value)
			case "slack":
				o.Slack, err = time.ParseDuration(value)
			case "permits":
				var n int
				n, err = strconv.Atoi(value)
				o.Permits = map[string]int{"": n}
			default:
				var stated promise.Set
				if stated, err = promise.Parse(name); err == nil && hasValue {
					err = fmt.Errorf("promise %s has no value", name)
				}
				o.Promises |= stated
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

// render is a judgement as text: the verdict, and a line for each property that applies.
func render(j checker.Judgement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", j.Verdict, j.Sentence)
	for _, r := range j.Results {
		if r.Outcome == checker.NotApplicable {
			continue
		}
		fmt.Fprintf(&b, "%s %s: %s\n", r.Property, r.Outcome, r.Summary)
		for _, v := range r.Violations {
			fmt.Fprintf(&b, "  [%s] clients %v, events %v, %v-%v: %s\n", v.Class, v.Clients, v.Events, v.Start,
				v.End, v.Text)
		}
	}
	return b.String()
}

// TestClockErrorConvictsNothing: a clock with an error makes fewer things certain, and none more.
func TestClockErrorConvictsNothing(t *testing.T) {
	fewer := 0
	checker.EachOfTestdata(t, func(file, text string) {
		recording, _, _ := strings.Cut(text, separator)
		h, err := foreign.ReadText(strings.NewReader(recording), file)
		if err != nil {
			t.Fatal(err)
		}
		o := recordingOptions(t, recording)
		exact := checker.Judge(h, o)
		o.ClockError = max(o.ClockError, 300*time.Millisecond)
		for _, r := range checker.Judge(h, o).Results {
			switch before := exact.Result(r.Property); {
			case r.Property == checker.Exercised:
			case r.Outcome == checker.Violated && before.Outcome != checker.Violated:
				t.Errorf("%s: an error of the clock convicts: %s", filepath.Base(file), r.Summary)
			case r.Outcome != checker.Violated && before.Outcome == checker.Violated:
				fewer++
			}
		}
	})
	if fewer == 0 {
		t.Error("an error of the clock acquits nothing: the test shows nothing")
	}
}
