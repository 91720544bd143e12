package liveholds

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/history/foreign"
)

// conflicts reports whether more holds than its lock allows are certain after any event of a history in text form.
func conflicts(t *testing.T, text, file string) bool {
	t.Helper()
	events, _, err := foreign.ReadTextEvents(strings.NewReader(text), file)
	if err != nil {
		t.Fatal(err)
	}
	l := New(0)
	for i := range events {
		if l.Add(&events[i]); l.Conflict(events[i].Key) {
			return true
		}
	}
	return false
}

// TestForcedReleasesLeaveDoubt: a hold that a forced release may have ended does not count as one of two holders
// at once; it does when the forced release was over before, or failed.
func TestForcedReleasesLeaveDoubt(t *testing.T) {
	const held = "client 0 acquire k 1.0-1.1 ok owner=a valid=9s\n"
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"none":                  {"client 2 acquire k 2.0-3.0 ok owner=b\n", true},
		"granted in flight":     {"client 1 force-release k 1.5-3.5 ok\nclient 2 acquire k 2.0-3.0 ok owner=b\n", false},
		"granted, no reply yet": {"client 1 force-release k 1.5-\nclient 2 acquire k 2.0-3.0 ok owner=b\n", false},
		"failed":                {"client 1 force-release k 1.5-3.5 fail\nclient 2 acquire k 2.0-3.0 ok owner=b\n", true},
		"of unknown outcome": {"client 1 force-release k 1.5-1.9 info\nclient 2 acquire k 2.0-3.0 ok owner=b\n" +
			"client 3 acquire k 3.0-3.1 ok owner=c\n", false},
		"both after it": {"client 1 force-release k 1.5-1.9 ok\nclient 2 acquire k 2.0-3.0 ok owner=b\n" +
			"client 3 acquire k 3.0-3.1 ok owner=c\n", true},
		"requested before its reply": {"client 0 release k 1.2-1.3 ok owner=a\nclient 1 force-release k 1.5-1.9 ok\n" +
			"client 2 acquire k 1.8-3.0 ok owner=b\nclient 3 acquire k 3.0-3.1 ok owner=c\n", false},
		"granted after it for certain": {"client 1 force-release k 1.5-1.9 ok\nclient 2 acquire k 1.6-1.8 ok owner=b\n" +
			"client 3 acquire k 1.7-3.1 ok owner=c\n", true},
	} {
		if got := conflicts(t, held+tc.text, ""); got != tc.want {
			t.Errorf("%s: two holders at once: %v, want %v", name, got, tc.want)
		}
	}
}

// TestForcedPermitsLeaveDoubt: permits that a forced release takes from one owner are in doubt, other owners' are not.
func TestForcedPermitsLeaveDoubt(t *testing.T) {
	const held = "client 0 acquire k 1.0-1.1 ok owner=a permits=2 limit=2\n" +
		"client 1 force-release k 1.5-3.5 ok owner=a permits=2\n"
	const next = "client 2 acquire k 2.0-3.0 ok owner=b permits=2 limit=2\n"
	if conflicts(t, held+next, "") {
		t.Error("the permits of the first owner count, although they may have been taken")
	}
	if !conflicts(t, held+next+"client 3 acquire k 2.0-3.1 ok owner=c permits=1 limit=2\n", "") {
		t.Error("the permits of the others do not count")
	}
}

// TestConflictsOfOperatorsAreViolations: a history of the checker's testdata with forced releases, or with a changed
// number of permits, that is not convicted of two holders at once shows none while the run is in progress either.
func TestConflictsOfOperatorsAreViolations(t *testing.T) {
	operators := regexp.MustCompile(` (force-release|resize|add-permits|drop-permits) `)
	found := 0
	files, err := filepath.Glob("../../checker/testdata/*.history")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		recording, judgement, _ := strings.Cut(string(text), "----\n")
		if !operators.MatchString(recording) {
			continue
		}
		if found++; !conflicts(t, recording, file) {
			continue
		}
		if !strings.Contains(judgement, "\nexclusion violated") && !strings.Contains(judgement, "\npermits violated") &&
			!strings.Contains(judgement, "\nreaders-writer violated") {
			t.Errorf("%s: two holders at once", file)
		}
	}
	if found < 30 {
		t.Errorf("only %d histories have forced releases or changed permits: too few for this test", found)
	}
}
