package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/checker"
)

func noon() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 250e6, time.UTC) }

func mustCreate(t *testing.T, root string, at time.Time) *Dir {
	t.Helper()
	d, err := Create(root, "failover", 42, at)
	if err != nil {
		t.Fatal(err)
	}
	if d.LinkErr != nil {
		t.Fatal(d.LinkErr)
	}
	return d
}

func TestCreateNamesAndLinks(t *testing.T) {
	root := t.TempDir()
	first := mustCreate(t, root, noon())
	if want := "failover/20260304T120000.250Z-42"; first.ID != want {
		t.Errorf("ID %q, want %q", first.ID, want)
	}
	second := mustCreate(t, root, noon())
	if want := "failover/20260304T120000.250Z-42-2"; second.ID != want {
		t.Errorf("second run of that millisecond: ID %q, want %q", second.ID, want)
	}
	for _, link := range []string{filepath.Join(root, "failover", Latest), filepath.Join(root, Latest)} {
		got, err := filepath.EvalSymlinks(link)
		if err != nil {
			t.Fatal(err)
		}
		want, err := filepath.EvalSymlinks(second.Path)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s points to %s, want %s", link, got, want)
		}
	}
}

func TestCreateLinkTaken(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "failover", Latest), 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := Create(root, "failover", 1, noon())
	if err != nil {
		t.Fatalf("a link that cannot be set must not stop a run: %v", err)
	}
	if d.LinkErr == nil {
		t.Error("LinkErr is nil although a directory has the name of the link")
	}
}

func TestCreateInFile(t *testing.T) {
	root := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(root, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Create(root, "failover", 1, noon())
	if err == nil || !strings.Contains(err.Error(), "is a file") || !strings.Contains(err.Error(), "--out") {
		t.Errorf("error %v, want one that says file and --out", err)
	}
}

// TestWritable: it has the errors of Create, and leaves nothing.
func TestWritable(t *testing.T) {
	root := t.TempDir()
	if err := Writable(filepath.Join(root, "a", "b")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Writable(filepath.Join(root, "file", "x")); err == nil || !strings.Contains(err.Error(), "--out") {
		t.Errorf("in a file: %v", err)
	}
	if err := Writable(root); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestSafeName(t *testing.T) {
	tests := map[string]string{
		"failover": "failover", "../../etc/passwd": "-..-etc-passwd", "": "run-", "latest": "run-latest",
		"a b\x00c": "a-b-c", ".hidden": "hidden", "größe": "gr--e",
	}
	for in, want := range tests {
		if got := SafeName(in); got != want {
			t.Errorf("SafeName(%q) = %q, want %q", in, got, want)
		}
	}
	if got := SafeName(strings.Repeat("x", 500)); len(got) != 100 {
		t.Errorf("a long name became %d bytes, want 100", len(got))
	}
}

func TestManifestAndVerdictRoundTrip(t *testing.T) {
	d := mustCreate(t, t.TempDir(), noon())
	m := Manifest{ID: d.ID, State: Running, Scenario: "failover", Seed: 1<<63 + 1, Started: noon()}
	if err := d.WriteManifest(m); err != nil {
		t.Fatal(err)
	}
	m.State = Complete
	if err := d.WriteManifest(m); err != nil {
		t.Fatal(err)
	}
	got, err := d.ReadManifest()
	if err != nil {
		t.Fatal(err)
	}
	m.Format = Format
	if diff := cmp.Diff(m, got); diff != "" {
		t.Error(diff)
	}
	if _, err := d.ReadVerdict(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("verdict of a run not judged: %v, want fs.ErrNotExist", err)
	}
	j := checker.Judgement{Verdict: checker.Unsafe, Sentence: "two held it", Events: 7}
	if err := d.WriteVerdict(j); err != nil {
		t.Fatal(err)
	}
	gotJ, err := d.ReadVerdict()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(j, gotJ); diff != "" {
		t.Error(diff)
	}
	left, err := filepath.Glob(filepath.Join(d.Path, ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("temporary files left: %v %v", left, err)
	}
}

// TestChangedSinceVerdict: a verdict is about the files that were there when it was written.
func TestChangedSinceVerdict(t *testing.T) {
	d := mustCreate(t, t.TempDir(), noon())
	write := func(name, text string) {
		t.Helper()
		if err := d.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	judge := func() {
		t.Helper()
		if err := d.WriteVerdict(checker.Judgement{Verdict: checker.Safe}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want string) {
		t.Helper()
		if got, err := d.ChangedSinceVerdict(); got != want || err != nil {
			t.Errorf("changed: %q, %v, want %q", got, err, want)
		}
	}
	write(HistoryFile, "one\n")
	judge()
	want("")
	write(HistoryFile, "two\n") // of the same size
	want(HistoryFile)
	judge()
	want("")
	write(WitnessFile, "{}\n")
	want(WitnessFile)
	if text, err := os.ReadFile(d.File(VerdictFile)); err != nil || !strings.Contains(string(text), `"bytes": 4`) ||
		!strings.Contains(string(text), "27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a") {
		t.Errorf("verdict.json: %v\n%s", err, text)
	}
	write(VerdictFile, "{}")
	want("") // written before verdicts identified their files
}

// TestDowngrade: a run that did not complete is not safe; other verdicts remain.
func TestDowngrade(t *testing.T) {
	for _, state := range []State{Running, Complete, Interrupted, Broken, ""} {
		for _, verdict := range []checker.Verdict{checker.Safe, checker.Unsafe, checker.Inconclusive} {
			want := verdict
			if verdict == checker.Safe && state != Complete && state != "" {
				want = checker.Inconclusive
			}
			m := Manifest{State: state, Phases: []Phase{{Name: PhaseRun}}}
			got := m.Downgrade(checker.Judgement{Verdict: verdict, Sentence: "A sentence."})
			if got.Verdict != want || !strings.HasSuffix(got.Sentence, "A sentence.") {
				t.Errorf("a %q run judged %s became %s (%s), want %s", state, verdict, got.Verdict, got.Sentence, want)
			}
		}
	}
}

// TestNotRun: a run that ended before its clients began says why, and is not judged.
func TestNotRun(t *testing.T) {
	judged := checker.Judgement{Verdict: checker.Inconclusive, Sentence: "A sentence.", Results: []checker.Result{{}}}
	for want, m := range map[string]Manifest{
		"no server could be started":                  {State: Broken, Failure: "no server could be started"},
		"it was interrupted before its clients began": {State: Interrupted, Phases: []Phase{{Name: "start"}}},
	} {
		got := m.Downgrade(judged)
		if diff := cmp.Diff(checker.Judgement{Verdict: checker.NotRun, Sentence: want}, got); diff != "" {
			t.Error(diff)
		}
		m.Phases = append(m.Phases, Phase{Name: PhaseRun})
		if got := m.Downgrade(judged); got.Verdict != checker.Inconclusive {
			t.Errorf("of a run that began: %s", got.Verdict)
		}
	}
}

// TestDowngradeAfterElection: a broken promise in a run with a failover that nobody planned convicts no lock.
func TestDowngradeAfterElection(t *testing.T) {
	m := Manifest{State: Complete, Elected: "n2 was promoted"}
	for class, want := range map[checker.Class]checker.Verdict{
		checker.BrokenPromise: checker.Inconclusive, checker.OutlivedLease: checker.Unsafe, "": checker.Unsafe,
	} {
		if got := m.Downgrade(checker.Judgement{Verdict: checker.Unsafe, Class: class}); got.Verdict != want {
			t.Errorf("class %q became %s (%s), want %s", class, got.Verdict, got.Sentence, want)
		}
	}
}

// TestDowngradeAfterSleep: servers end leases by a clock that advances while the machine sleeps.
func TestDowngradeAfterSleep(t *testing.T) {
	for _, verdict := range []checker.Verdict{checker.Safe, checker.Unsafe} {
		m := Manifest{State: Complete, Slept: time.Minute}
		if got := m.Downgrade(checker.Judgement{Verdict: verdict}); got.Verdict != checker.Inconclusive {
			t.Errorf("%s became %s (%s)", verdict, got.Verdict, got.Sentence)
		}
	}
}

func TestOpen(t *testing.T) {
	root := t.TempDir()
	d := mustCreate(t, root, noon())
	if err := d.WriteManifest(Manifest{ID: d.ID, Scenario: "failover"}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{d.Path, filepath.Join(root, "failover", Latest), filepath.Join(root, Latest)} {
		got, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got.ID != d.ID {
			t.Errorf("Open(%s).ID = %q, want %q", path, got.ID, d.ID)
		}
	}
}

func TestOpenBareLatest(t *testing.T) {
	t.Chdir(t.TempDir())
	d := mustCreate(t, "", noon())
	if err := d.WriteManifest(Manifest{ID: d.ID}); err != nil {
		t.Fatal(err)
	}
	got, err := Open(Latest)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != d.ID {
		t.Errorf("ID %q, want %q", got.ID, d.ID)
	}
}

func TestOpenRefuses(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) string {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("history-only/history.jsonl", "")
	write("future/run.json", `{"format":99}`)
	write("past/run.json", `{"format":1}`)
	write("torn/run.json", `{"format":3,"id":"a`)
	write("runs/x/run.json", `{"format":3}`)
	if err := os.Symlink("x", filepath.Join(root, "runs", Latest)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ path, want string }{
		{"absent", "no such file"},
		{"future/run.json", "it is a file"},
		{"empty", "neither run.json nor history.jsonl"},
		{"history-only", "chaos check"},
		{"future", "version 99"},
		{"past", "its format is version 1, and this program reads version 3"},
		{"torn", "truncated"},
		{"runs", "it contains run directories"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			_, err := Open(filepath.Join(root, tt.path))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestExplainSaysWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fs.ErrPermission, "may write to (--out)"},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "make room"},
	} {
		got := explain("writing x", tt.err)
		if !strings.Contains(got.Error(), tt.want) || !errors.Is(got, tt.err) {
			t.Errorf("explain(%v) = %v, want %q and the cause wrapped", tt.err, got, tt.want)
		}
	}
}

func TestLogFileAppends(t *testing.T) {
	d := mustCreate(t, t.TempDir(), noon())
	for _, text := range []string{"one\n", "two\n"} {
		f, err := d.LogFile("../n1.log")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	logs := d.Logs()
	if diff := cmp.Diff([]string{"-n1.log"}, logs); diff != "" {
		t.Fatal(diff)
	}
	got, err := os.ReadFile(filepath.Join(d.Path, LogsDir, logs[0]))
	if err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("log is %q, %v", got, err)
	}
}

func TestWriteFileStaysInside(t *testing.T) {
	d := mustCreate(t, t.TempDir(), noon())
	if err := d.WriteFile("../x", nil); err == nil {
		t.Error("a file outside the run directory was written")
	}
}
