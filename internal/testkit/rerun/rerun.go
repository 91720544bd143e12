// Package rerun decides which runs on real servers a test repeats, in one place for all tests.
//
// Real servers, clients and the harness share the machine with other programs. A run on an overloaded machine may
// show less than its scenario expects, or something else: an election takes longer than the run, or a lease ends while
// no process runs. Such a run proves nothing about the code under test. [Again] decides by the run's own records, and
// logs each repetition.
package rerun

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// tries is how often a test executes a run at most.
const tries = 4

// LongestStall is the longest time for which the harness did not run, as the history has it; 0: it always ran. Stalls
// of up to half of the slack of the checkers are not recorded.
func LongestStall(h *history.History) time.Duration {
	longest := time.Duration(0)
	for i := range h.Faults {
		if f := &h.Faults[i]; f.Phase == history.Noted && f.Name == history.HarnessStalled {
			longest = max(longest, f.Lasted)
		}
	}
	return longest
}

// Again reports whether a test repeats the run in dir, which is not as expected and was its try-th: if the record of
// the run proves that the machine stalled, or if the run shows less than expected, as one in twenty may
// (docs/design.md, section 7). What an unsafe run shows without a stall is a finding and is never repeated.
func Again(t testing.TB, try int, dir string) bool {
	t.Helper()
	d, err := rundir.Open(dir)
	if err != nil {
		t.Logf("not repeated: %v", err)
		return false
	}
	verdict, unjudged := d.ReadVerdict()
	h, unread := history.ReadFile(d.File(rundir.HistoryFile))
	if err := errors.Join(unjudged, unread); err != nil {
		t.Logf("not repeated: %v", err)
		return false
	}
	why := "it shows less than expected"
	switch stall := LongestStall(h); {
	case stall > 0:
		why = "the harness did not run for " + format.Duration(stall)
	case verdict.Verdict == checker.Unsafe:
		return false
	}
	return Because(t, try, fmt.Sprintf("%s; %s: %s", why, verdict.Verdict, verdict.Sentence))
}

// Because reports whether a test repeats its try-th run because of why, a reason that only the test can know: if it was
// not the last try. It logs both answers.
func Because(t testing.TB, try int, why string) bool {
	t.Helper()
	if try >= tries {
		t.Logf("not repeated: it was run %d times; %s", try, why)
		return false
	}
	t.Logf("REPEATED after run %d of at most %d: %s", try, tries, why)
	return true
}
