package checker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// story is a history of testdata with what it is judged to be.
type story struct {
	name string
	h    *history.History
	o    checker.Options
	want map[checker.Property]checker.Result
}

func stories(t *testing.T) (all []story) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.history")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		told, _, _ := strings.Cut(string(text), separator)
		h, err := history.ReadText(strings.NewReader(told), file)
		if err != nil {
			t.Fatal(err)
		}
		s := story{name: filepath.Base(file), h: h, o: storyOptions(t, told), want: map[checker.Property]checker.Result{}}
		for _, r := range checker.Judge(h, s.o).Results {
			s.want[r.Property] = r
		}
		all = append(all, s)
	}
	return all
}

// TestEveryRuleHasTeeth switches off each rule of each property, one at a
// time, those that convict and those that acquit: the judgement of some history
// in testdata must be another one then.
func TestEveryRuleHasTeeth(t *testing.T) {
	all := stories(t)
	for _, s := range checker.Catalog() {
		rules := checker.Rules(s.Name)
		if len(rules) == 0 {
			t.Errorf("%s has no rules", s.Name)
		}
		for n, rule := range rules {
			if rule == "" { // the numbers of linearizable name other things besides
				continue
			}
			t.Run(string(s.Name)+"/"+rule, func(t *testing.T) {
				for _, story := range all {
					o := checker.Without(story.o, s.Name, n)
					o.Only = []checker.Property{s.Name}
					got, want := *checker.Judge(story.h, o).Result(s.Name), story.want[s.Name]
					if got.Outcome != want.Outcome {
						t.Logf("%s: %s without the rule, %s with it", story.name, got.Outcome, want.Outcome)
						return
					}
				}
				t.Errorf("no history in testdata is judged otherwise without the rule %q of %s", rule, s.Name)
			})
		}
	}
}
