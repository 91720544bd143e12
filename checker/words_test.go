package checker

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/history/foreign"
)

// TestWordsAreKnown: every word of a wording stands for something.
func TestWordsAreKnown(t *testing.T) {
	h, err := foreign.ReadText(strings.NewReader("clients 1\nclient 0 acquire orders 1.0-1.1 ok owner=a\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	v := newView(h, Options{})
	for _, words := range []map[int]wording{honestyWords(), wakeUpWords(), latchWords(), holdCountWords(), fencingWords()} {
		for rule, w := range words {
			got := v.word(finding{note: "a note"}, w)
			if got.Rule == "" || got.Text == "" || strings.ContainsAny(got.Rule+got.Text, "${}") {
				t.Errorf("rule %d: %q, %q", rule, got.Rule, got.Text)
			}
		}
	}
}
