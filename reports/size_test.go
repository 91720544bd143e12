package reports

import (
	"os"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// TestSize: the page of 100,000 operations has at most 2 MiB. It logs how long reading, judging and rendering take;
// docs/contributors/measurements.md has the result.
func TestSize(t *testing.T) {
	dir := bigSynth().load(t).Dir
	file := dir.File(rundir.HistoryFile)
	began := time.Now()
	h, err := history.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h.Clients = 50
	read := time.Since(began)
	began = time.Now()
	j := checker.Judge(h, checker.Options{})
	judge := time.Since(began)
	if len(h.Spans) != 100_000 || j.Verdict != checker.Safe {
		t.Fatalf("%d operations, verdict %s (%s); want 100,000 and safe", len(h.Spans), j.Verdict, j.Sentence)
	}
	began = time.Now()
	r, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteAll(r); err != nil {
		t.Fatal(err)
	}
	report := time.Since(began)
	t.Logf("%d operations, %d events, %d bytes of history", len(h.Spans), h.Events, size(t, file))
	t.Logf("reading %v, judging %v, loading and writing all reports %v", read.Round(time.Millisecond),
		judge.Round(time.Millisecond), report.Round(time.Millisecond))
	page := size(t, dir.File(rundir.ReportFile))
	t.Logf("report.html: %d bytes", page)
	if page > 2<<20 {
		t.Errorf("report.html has %d bytes, want at most 2 MiB", page)
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
