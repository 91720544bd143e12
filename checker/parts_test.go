package checker

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history/foreign"
)

// TestSeveralKeysAtOnce: an owner that acquires several keys with one operation is judged as any other, but not while
// it has two operations in flight.
func TestSeveralKeysAtOnce(t *testing.T) {
	const second = "\nclient 1 acquire b 1.5-1.6 ok owner=y valid=9s\nclient 1 release b 2.5-2.6 ok owner=y"
	for _, test := range []struct {
		name, part string
		want       property.Outcome
	}{{"one operation", " part", property.Violated}, {"two operations", "", property.Undecided}} {
		text := "clients 2\nclient 0 acquire a 1.0-1.1 ok owner=x valid=9s\nclient 0 acquire b 1.0-1.1 ok owner=x valid=9s" +
			test.part + "\nclient 0 release a 2.0-2.1 ok owner=x\nclient 0 release b 2.0-2.1 ok owner=x" + test.part + second
		h, err := foreign.ReadText(strings.NewReader(text), test.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range Judge(h, property.Options{Only: []property.Name{property.Exclusion}}).Results {
			if r.Property == property.Exclusion && r.Outcome != test.want {
				t.Errorf("%s: %s, want %s (%s)", test.name, r.Outcome, test.want, r.Summary)
			}
		}
	}
}
