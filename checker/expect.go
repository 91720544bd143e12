package checker

import (
	"fmt"
	"slices"
)

// Keys of an expectation besides the names of properties.
const (
	ExpectVerdict = "verdict" // safe, unsafe or inconclusive
	ExpectClass   = "class"   // of the verdict
)

// Unexpected compares a judgement with an expectation by property name, "verdict" or "class". It returns a sentence
// for each difference. A property that was not judged is never as expected.
func Unexpected(j Judgement, expect map[string]string) []string {
	got := map[string]string{ExpectVerdict: string(j.Verdict), ExpectClass: string(j.Class)}
	for _, r := range j.Results {
		got[string(r.Property)] = string(r.Outcome)
	}
	var wrong []string
	for name, want := range expect { // order does not matter: sorted below
		switch is, ok := got[name]; {
		case !ok || is == "":
			wrong = append(wrong, fmt.Sprintf("%s: expected %s, but it was not judged", name, want))
		case is != want:
			wrong = append(wrong, fmt.Sprintf("%s: expected %s, got %s", name, want, is))
		}
	}
	slices.Sort(wrong)
	return wrong
}
