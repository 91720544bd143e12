package checker

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/history/foreign"
)

// TestWordsAreKnown: every word of a wording stands for something.
func TestWordsAreKnown(t *testing.T) {
	h, err := foreign.ReadText(strings.NewReader("clients 1\nclient 0 acquire orders 1.0-1.1 ok owner=a\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	v := bounds.New(h, given.Options{})
	for _, s := range Catalog() {
		for _, rule := range s.rules {
			if rule.Text == "" {
				continue
			}
			got := finding.Word(v, finding.Finding{Note: "a note"}, rule)
			if got.Rule == "" || got.Text == "" || strings.ContainsAny(got.Rule+got.Text, "${}") {
				t.Errorf("rule %s of %s: %q, %q", rule.Name, s.Name, got.Rule, got.Text)
			}
		}
	}
}
