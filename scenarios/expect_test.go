package scenarios

import (
	"maps"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
)

// except is a safe scenario's expectation with one exception.
func except(entry string) string { return "expect:\n  verdict: safe\n  except: {" + entry + "}\n" }

// badExpectations are expectations that a text cannot have.
func badExpectations() []badText {
	return []badText{
		{"property outside of except", good("expect: {exclusion: holds}\n")},
		{"class beside the verdict", good("expect: {verdict: unsafe, class: outlived lease}\n")},
		{"unknown key of expect", good("expect: {verdict: safe, excpet: {}}\n")},
		{"an empty section", good("expect: {}\n")},
		{"an empty text", good("expect: ''\n")},
		{"nothing after the key", good("expect: # verdict: safe\n")},
		{"only an empty exception", good("expect: {except: {}}\n")},
		{"no verdict", good("expect: {except: {leak: {outcome: holds, because: a}}}\n")},
		{"unknown verdict", good("expect: unsave\n")},
		{"unknown verdict in a section", good("expect: {verdict: unsave}\n")},
		{"unknown class", good("expect: unsafe, outlived leese\n")},
		{"a class instead of a verdict", good("expect: broken promise\n")},
		{"a class without its comma", good("expect: unsafe broken promise\n")},
		{"verdict after a class", good("expect: unsafe, broken promise or inconclusive\n")},
		{"class of a safe run", good("expect: safe, broken promise\n")},
		{"list of verdicts", good("expect: [safe]\n")},
		{"unknown property", good(except("exclusions: {outcome: holds, because: a}"))},
		{"unknown outcome", good(except("exclusion: {outcome: hold, because: a}"))},
		{"exception without a reason", good(except("exclusion: {outcome: holds}"))},
		{"unknown key of an exception", good(except("exclusion: {outcome: holds, why: a}"))},
		{"exception without keys", good(except("exclusion: holds"))},
		{"violation in a safe run", good(except("exclusion: {outcome: holds or violated, because: a}"))},
		{"property that is not a path", good(except("\"a b[0].c*\": {outcome: holds, because: a}"))},
	}
}

// TestExceptionsAreNeeded: an exception of a named scenario changes the derived outcome.
func TestExceptionsAreNeeded(t *testing.T) {
	all, err := Catalog()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		stated, err := s.ExpectedOfLock()
		if err != nil {
			t.Fatal(err)
		}
		for name := range s.Expect.Except {
			without := s
			without.Expect.Except = maps.Clone(s.Expect.Except)
			delete(without.Expect.Except, name)
			derived, err := without.ExpectedOfLock()
			if p := checker.Property(name); err != nil || derived[p].Outcome == stated[p].Outcome {
				t.Errorf("%s: %s would be %s without the exception (%v)", s.Name, name, derived[p].Outcome, err)
			}
		}
	}
}
