package checker

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/fencing"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/holdcount"
	"github.com/lockchaos/lockchaos/checker/internal/latch"
	"github.com/lockchaos/lockchaos/checker/internal/wakeup"
	"github.com/lockchaos/lockchaos/history/foreign"
)

// TestWordsAreKnown: every word of a wording stands for something.
func TestWordsAreKnown(t *testing.T) {
	h, err := foreign.ReadText(strings.NewReader("clients 1\nclient 0 acquire orders 1.0-1.1 ok owner=a\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	v := bounds.New(h, given.Options{})
	for _, words := range []map[int]finding.Wording{claims.Words(), wakeup.Words(), latch.Words(), holdcount.Words(),
		fencing.Words()} {
		for rule, w := range words {
			got := finding.Word(v, finding.Finding{Note: "a note"}, w)
			if got.Rule == "" || got.Text == "" || strings.ContainsAny(got.Rule+got.Text, "${}") {
				t.Errorf("rule %d: %q, %q", rule, got.Rule, got.Text)
			}
		}
	}
}
