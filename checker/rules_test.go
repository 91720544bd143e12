package checker_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// recording is a history of testdata with its expected judgement.
type recording struct {
	name string
	h    *history.History
	o    checker.Options
	want map[checker.Property]checker.Result
}

func recordings(t *testing.T) (all []recording) {
	t.Helper()
	checker.EachOfTestdata(t, func(file, text string) {
		recorded, _, _ := strings.Cut(text, separator)
		h, err := foreign.ReadText(strings.NewReader(recorded), file)
		if err != nil {
			t.Fatal(err)
		}
		s := recording{name: filepath.Base(file), h: h, o: recordingOptions(t, recorded),
			want: map[checker.Property]checker.Result{}}
		for _, r := range checker.Judge(h, s.o).Results {
			s.want[r.Property] = r
		}
		all = append(all, s)
	})
	return all
}

// TestEveryRuleIsNeeded switches off each rule of each property in turn, convicting and acquitting ones: the judgement
// of some history in testdata must change.
func TestEveryRuleIsNeeded(t *testing.T) {
	race.Skip(t)
	all := recordings(t)
	for _, s := range checker.Catalog() {
		rules := checker.Rules(s.Name)
		if len(rules) == 0 {
			t.Errorf("%s has no rules", s.Name)
		}
		for n, rule := range rules {
			if rule == "" { // a number of linearizable that is not a rule
				continue
			}
			t.Run(string(s.Name)+"/"+rule, func(t *testing.T) {
				for _, recording := range all {
					if _, judged := recording.want[s.Name]; !judged {
						continue
					}
					got, want := checker.JudgeWithout(recording.h, recording.o, s.Name, n), recording.want[s.Name]
					if got.Outcome != want.Outcome {
						t.Logf("%s: %s without the rule, %s with it", recording.name, got.Outcome, want.Outcome)
						return
					}
				}
				t.Errorf("no history in testdata is judged otherwise without the rule %q of %s", rule, s.Name)
			})
		}
	}
}
