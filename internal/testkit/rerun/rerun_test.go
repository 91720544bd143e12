package rerun

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

const (
	operation = `{"index":0,"time":1,"type":"invoke","process":0,"f":"acquire","key":"k"}` + "\n"
	stall     = `{"index":1,"time":900000000,"type":"info","process":"nemesis","f":"harness-stalled",` +
		`"value":{"fault":{"phase":"note","target":"harness","lasted_ns":700000000}}}` + "\n"
)

// TestAgain: a run that shows less is repeated, an unsafe run only if it has a record of a stall, and none more often
// than Tries.
func TestAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		text    string
		verdict checker.Verdict
		try     int
		again   bool
	}{
		{"inconclusive", operation, checker.Inconclusive, 1, true},
		{"safe", operation, checker.Safe, tries - 1, true},
		{"too often", operation, checker.Safe, tries, false},
		{"unsafe", operation, checker.Unsafe, 1, false},
		{"unsafe, stalled", operation + stall, checker.Unsafe, 1, true},
		{"unsafe, stalled, too often", operation + stall, checker.Unsafe, tries, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := &rundir.Dir{Path: t.TempDir()}
			write(t, dir, c.text)
			if err := dir.WriteManifest(rundir.Manifest{ID: "a/b"}); err != nil {
				t.Fatal(err)
			}
			if err := dir.WriteVerdict(checker.Judgement{Verdict: c.verdict}); err != nil {
				t.Fatal(err)
			}
			if got := Again(t, c.try, dir.Path); got != c.again {
				t.Errorf("repeated: %v, want %v", got, c.again)
			}
		})
	}
	if Again(t, 1, filepath.Join(t.TempDir(), "none")) {
		t.Error("what is not a run is repeated")
	}
}

func TestLongestStall(t *testing.T) {
	dir := &rundir.Dir{Path: t.TempDir()}
	write(t, dir, operation+stall)
	h, err := history.ReadFile(dir.File(rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	if got := LongestStall(h); got != 700*time.Millisecond {
		t.Errorf("%v, want 700 ms", got)
	}
}

func write(t *testing.T, dir *rundir.Dir, text string) {
	t.Helper()
	if err := os.WriteFile(dir.File(rundir.HistoryFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
