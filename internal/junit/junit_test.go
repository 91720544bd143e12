package junit

import (
	"encoding/xml"
	"strings"
	"testing"
)

// TestCounts: cases are counted by outcome, and texts are escaped.
func TestCounts(t *testing.T) {
	var b strings.Builder
	err := Write(&b, Suite{Name: "all", Tests: 99, Cases: []Case{
		{Name: "passes"}, {Name: "fails", Failure: &Message{Message: `"<a>"`}}, {Name: "skipped", Skipped: &Message{}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got suites
	if err := xml.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 3 || got.Failures != 1 || got.Skipped != 1 || got.Suites[0].Tests != 3 {
		t.Errorf("counted %d tests, %d failures, %d skipped:\n%s", got.Tests, got.Failures, got.Skipped, b.String())
	}
	if text := got.Suites[0].Cases[1].Failure.Message; text != `"<a>"` {
		t.Errorf("the message became %q", text)
	}
}
