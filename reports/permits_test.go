package reports

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
)

// TestPermitsAreOverlaps: violations of permits are shown as overlaps.
func TestPermitsAreOverlaps(t *testing.T) {
	for p, want := range map[checker.Property]bool{
		checker.Permits: true, checker.ReadersWriter: true, checker.Exclusion: true, checker.Linearizable: false,
	} {
		if overlaps(p) != want {
			t.Errorf("overlaps(%s) = %v", p, !want)
		}
	}
	broken := &checker.Violation{Class: checker.BrokenPromise}
	if a, b := severity(checker.Permits, broken), severity(checker.Linearizable, broken); a <= b {
		t.Errorf("permits rank %d, linearizable %d: want permits above linearizable", a, b)
	}
	for n, want := range map[int32]string{0: "the lock", 1: "1 permit", 3: "3 permits"} {
		if h := (&hold{Hold: checker.Hold{Permits: n}}); !strings.Contains(h.what("the lock"), want) {
			t.Errorf("%d permits are %q, want %q", n, h.what("the lock"), want)
		}
	}
}
