package suite

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Filter chooses scenarios. The zero value chooses all.
type Filter struct {
	terms []term
}

// term is one condition: a field of the scenario matches one of the patterns, or none if not is true.
type term struct {
	field    string
	patterns []string
	not      bool
}

// filterFields are the fields of a scenario that a filter can name.
func filterFields() map[string]func(s Scenario) []string {
	return map[string]func(s Scenario) []string{
		"name":     func(s Scenario) []string { return []string{s.Name, s.Arg} },
		"lock":     func(s Scenario) []string { return s.LockNames() },
		"topology": func(s Scenario) []string { return []string{s.Topology.Kind} },
		"workload": func(s Scenario) []string { return []string{s.Workload.Defaults().Kind} },
		"verdict":  expectedVerdicts,
		"fault":    func(s Scenario) []string { return s.FaultNames() },
	}
}

func expectedVerdicts(s Scenario) []string {
	verdict, _ := s.Expect.Split()
	return expect.Outcomes(verdict)
}

// Scenario is a scenario and how `chaos run` names it: a name or a file.
type Scenario struct {
	Arg string
	scenarios.Scenario
	Unfit   string   // why it cannot run with the lock that replaces its own; "": it can
	Args    []string // of its run, in addition to the arguments of all runs
	Library *Library // nil: the scenario has the expectation
}

// Library is a lock of another library, and the expected outcome of a run of one scenario with it.
type Library struct {
	Lock     string // as `chaos run --lock` takes it
	Expected string // for people
	Compare  func(checker.Judgement) (Outcome, []string)
}

// LibraryOutcome is the outcome of a run as adapters/*/expect.tsv writes it: safe, inconclusive, broken promise,
// outlived lease, or violated.
func LibraryOutcome(j checker.Judgement) string {
	if j.Verdict != checker.Unsafe {
		return string(j.Verdict)
	}
	if j.Class != "" {
		return string(j.Class)
	}
	return "violated"
}

// Title is the name of the scenario in a row: with the lock, if that is of a library.
func (s Scenario) Title() string {
	if s.Library != nil {
		return s.Library.Lock + " in " + s.Name
	}
	return s.Name
}

// expected is the expected verdict and class as text.
func (s Scenario) expected() string {
	if s.Library != nil {
		return s.Library.Expected
	}
	return s.Expect.Text()
}

// compare is the outcome of a judged run, and every difference from the expectation.
func (s Scenario) compare(run judged) (Outcome, []string) {
	if s.Library != nil {
		return s.Library.Compare(run.judgement)
	}
	return compare(run)
}

// ParseFilter parses conditions that are separated by commas and must all be met. A condition is FIELD=PATTERN or a
// PATTERN of names; patterns are as in [path.Match], several are separated by |, and ! in front negates:
//
//	redlock*,!redlock-jitter,topology=quorum,verdict=safe,fault=kill|pause-client
func ParseFilter(text string) (Filter, error) {
	var f Filter
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		t := term{field: "name"}
		word, t.not = strings.CutPrefix(word, "!")
		if field, patterns, ok := strings.Cut(word, "="); ok {
			t.field, word = strings.TrimSpace(field), patterns
		}
		if filterFields()[t.field] == nil {
			return f, fmt.Errorf("unknown field %q; known are %s", t.field,
				strings.Join(slices.Sorted(maps.Keys(filterFields())), ", "))
		}
		for pattern := range strings.SplitSeq(word, "|") {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				return f, fmt.Errorf("invalid pattern %q", pattern)
			}
			t.patterns = append(t.patterns, pattern)
		}
		f.terms = append(f.terms, t)
	}
	return f, nil
}

// Matches reports whether s meets every condition.
func (f Filter) Matches(s Scenario) bool {
	for _, t := range f.terms {
		found := slices.ContainsFunc(filterFields()[t.field](s), func(value string) bool {
			return slices.ContainsFunc(t.patterns, func(pattern string) bool {
				ok, _ := path.Match(pattern, value)
				return ok
			})
		})
		if found == t.not {
			return false
		}
	}
	return true
}
