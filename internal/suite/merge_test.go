package suite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// written writes the results of a suite into a directory.
func written(t *testing.T, s Suite, dir string) string {
	t.Helper()
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// merged merges directories, and writes the results into another one.
func merged(t *testing.T, dirs ...string) (Suite, string) {
	t.Helper()
	out := t.TempDir()
	s, err := Merge(dirs, out)
	if err != nil {
		t.Fatal(err)
	}
	return s, written(t, s, out)
}

// TestMerge: four shards are one suite, however often one of them is merged.
func TestMerge(t *testing.T) {
	names := []string{"safe", "unsafe", "inconclusive", "safe-a", "safe-b", "unsafe-c", "safe-d"}
	whole := options(t, names...)
	whole.Repeat = 3
	want := run(t, whole)
	var dirs []string
	for i := range 4 {
		o := options(t, names...)
		o.Repeat, o.Shard = 3, Shard{i + 1, 4}
		dirs = append(dirs, written(t, run(t, o), o.Out))
	}
	got, out := merged(t, append(dirs, dirs[2])...)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Suite{}, "Shards", "Started", "Finished"),
		cmpopts.IgnoreFields(Row{}, "Seconds", "Run")); diff != "" {
		t.Errorf("merged (-one suite +four shards):\n%s", diff)
	}
	for _, r := range got.Notable() {
		if _, err := rundir.Open(filepath.Join(out, r.Run)); err != nil {
			t.Errorf("%s: %v", r.Scenario, err)
		}
	}
	if got.ExitCode() != 1 || len(got.Shards) != 4 {
		t.Errorf("exit code %d, shards %v", got.ExitCode(), got.Shards)
	}
	part, err := Merge([]string{dirs[0], dirs[3]}, t.TempDir())
	if err != nil || !slices.Equal(part.Notes, []string{"shard 2/4 is missing", "shard 3/4 is missing"}) {
		t.Errorf("two of four shards: notes %q, %v", part.Notes, err)
	}
	if part.Rows = nil; part.ExitCode() != 2 {
		t.Errorf("two of four shards: exit code %d", part.ExitCode())
	}
}

// TestMergeInSteps: shards may be joined in any order and in any number of steps, one of which was killed and has run
// again.
func TestMergeInSteps(t *testing.T) {
	names := []string{"safe", "unsafe", "inconclusive", "safe-a", "safe-b", "unsafe-c", "safe-d"}
	shard := func(i int, killed bool) string {
		o := options(t, names...)
		o.Shard, o.Jobs = Shard{i, 4}, 1
		if s := run(t, o); !killed {
			written(t, s, o.Out)
		}
		return o.Out
	}
	merge := func(dirs ...string) string {
		_, out := merged(t, dirs...)
		return out
	}
	read := func(dir string) Suite {
		s, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Notable() {
			if _, err := rundir.Open(filepath.Join(dir, r.Run)); err != nil && r.Run != "" {
				t.Errorf("%s: %v", r.Scenario, err)
			}
		}
		return s
	}
	a, b, c, d := shard(1, false), shard(2, false), shard(3, false), shard(4, false)
	killed := shard(3, true)
	want, part := read(merge(a, b, c, d, killed)), read(merge(a, b, killed))
	if len(want.Missing) > 0 || len(want.Notes) > 0 || len(want.Rows) != len(names) {
		t.Fatalf("missing %v, notes %q, %d rows", want.Missing, want.Notes, len(want.Rows))
	}
	if !slices.ContainsFunc(part.Rows, func(r Row) bool { return r.Partial == Shard{3, 4} }) {
		t.Errorf("no rows of the killed shard: %v", part.Rows)
	}
	for what, test := range map[string]struct {
		got  string
		want Suite
	}{
		"again":              {merge(merge(a, b, c, d, killed)), want},
		"twice":              {merge(merge(a, b, c, d), merge(a, b, c, d), merge(killed)), want},
		"two and two":        {merge(merge(a, b), merge(c, d), killed), want},
		"overlapping":        {merge(merge(d, a), merge(a, b, c), merge(killed, b)), want},
		"one after another":  {merge(d, merge(c, merge(merge(killed, b), a))), want},
		"a part, again":      {merge(merge(a, b, killed)), part},
		"a part, in steps":   {merge(merge(killed), merge(b), a), part},
		"a part, and killed": {merge(merge(merge(b, killed), a), killed), part},
	} {
		if diff := cmp.Diff(test.want, read(test.got)); diff != "" {
			t.Errorf("%s (-at once +in steps):\n%s", what, diff)
		}
	}
}

// TestMergeOneShard: one shard of several is not the whole suite.
func TestMergeOneShard(t *testing.T) {
	o := options(t, "safe", "safe-a")
	o.Shard = Shard{2, 2}
	s, err := Merge([]string{written(t, run(t, o), o.Out)}, t.TempDir())
	if err != nil || s.ExitCode() != 2 || !slices.Equal(s.Notes, []string{"shard 1/2 is missing"}) {
		t.Errorf("exit code %d, notes %q, %v", s.ExitCode(), s.Notes, err)
	}
}

// TestMergeKilledShard: the rows of a shard that was killed count, and the shard is missing until it has run again. The
// results of an earlier suite in its directory are not taken for its own.
func TestMergeKilledShard(t *testing.T) {
	shard := func(i int) Options {
		o := options(t, "safe", "safe-a", "unsafe", "unsafe-b")
		o.Shard, o.Jobs = Shard{i, 2}, 1
		return o
	}
	first, killed := shard(1), shard(2)
	written(t, run(t, first), first.Out)
	earlier := killed
	earlier.Seed = 7
	written(t, run(t, earlier), killed.Out)
	run(t, killed) // its results are never written
	rows := 0
	if p, err := ReadProgress(os.DirFS(killed.Out)); err == nil {
		rows = len(p.Suite.Rows)
	}
	s, err := Merge([]string{first.Out, killed.Out}, t.TempDir())
	note := fmt.Sprintf("shard 2/2 did not end: %d of 2 rows are in %s", rows, killed.Out)
	if err != nil || rows == 0 || len(s.Rows) != 2+rows || s.Finished.Before(s.Started) || !slices.Equal(s.Missing, []Shard{{2, 2}}) ||
		!slices.Equal(s.Notes, []string{note, "shard 2/2 is missing"}) {
		t.Errorf("%d rows, missing %v, notes %q, %v", len(s.Rows), s.Missing, s.Notes, err)
	}
	if s.Rows = nil; s.ExitCode() != 2 {
		t.Errorf("exit code %d", s.ExitCode())
	}
	again := shard(2)
	written(t, run(t, again), again.Out)
	s, err = Merge([]string{first.Out, killed.Out, again.Out}, t.TempDir())
	if err != nil || len(s.Rows) != 4 || s.Missing != nil || s.Notes != nil {
		t.Errorf("the shard has run again: %d rows, missing %v, notes %q, %v", len(s.Rows), s.Missing, s.Notes, err)
	}
}

// TestMergeKilledTwice: of the rows of a shard that was killed twice the later ones count, in any order and number of
// steps, also if a row of one attempt has no backend, because it did not run. Those of a shard that ended replace all.
func TestMergeKilledTwice(t *testing.T) {
	start := time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)
	row := func(name, backend string, seconds float64, o Outcome) Row {
		return Row{Format: Format, Scenario: name, Number: 1, Backend: backend, Seconds: seconds, Outcome: o}
	}
	attempt := func(minute int, rows ...Row) Suite {
		return Suite{Format: Format, Seed: 1, Repeat: 1, Shards: []Shard{{2, 2}}, Rows: rows,
			Started: start.Add(time.Duration(minute) * time.Minute)}
	}
	killed := func(s Suite) string {
		dir := t.TempDir()
		if err := (Progress{Total: 3, Updated: s.Started.Add(time.Second), Suite: s}).write(dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	a := killed(attempt(1, row("a", "sim", 1, AsExpected), row("b", "", 0, Unable), row("c", "sim", 9, AsExpected)))
	b := killed(attempt(2, row("a", "sim", 2, AsExpected), row("b", "sim", 2, Differs)))
	c := killed(attempt(2, row("a", "sim", 3, AsExpected))) // started in the same instant
	want, all := merged(t, a, b, c)
	var got []string
	for _, r := range want.Rows {
		got = append(got, fmt.Sprintf("%s %v %s %s %d", r.Scenario, r.Seconds, r.Outcome, r.Partial, r.Begun.Minute()))
	}
	if !slices.Equal(got, []string{"a 3 as-expected 2/2 2", "b 2 differs 2/2 2", "c 9 as-expected 2/2 1"}) {
		t.Errorf("rows %q", got)
	}
	_, ca := merged(t, c, a)
	_, b1 := merged(t, b)
	for _, dirs := range [][]string{{c, b, a}, {b, a, c}, {b, ca}, {ca, b1}, {all, a}, {a, b, ca}} {
		s, _ := merged(t, dirs...)
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("in another order (-want +got):\n%s", diff)
		}
	}
	whole := attempt(0, row("a", "sim", 4, AsExpected), row("b", "sim", 4, AsExpected), row("c", "sim", 4, AsExpected))
	ended := written(t, whole, t.TempDir())
	for _, dirs := range [][]string{{a, b, ended}, {ended, all}} {
		if s, _ := merged(t, dirs...); !reflect.DeepEqual(s.Rows, whole.Rows) {
			t.Errorf("the shard has ended: %+v", s.Rows)
		}
	}
}

// TestMergeSupersededRun: the run of a row that does not count is not copied.
func TestMergeSupersededRun(t *testing.T) {
	out := t.TempDir()
	var dirs []string
	for i := range 2 {
		s := Suite{Format: Format, Repeat: 1, Shards: []Shard{{1, 1}}, Started: time.Unix(int64(i+1), 0).UTC(),
			Rows: []Row{{Format: Format, Scenario: "a", Number: 1, Outcome: Differs, Run: fmt.Sprintf("runs/a/%d", i)}}}
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, s.Rows[0].Run), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := (Progress{Total: 2, Updated: s.Started, Suite: s}).write(dir); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	if _, err := Merge(dirs, out); err != nil {
		t.Fatal(err)
	}
	if runs, err := filepath.Glob(filepath.Join(out, "runs/a/*")); err != nil || len(runs) != 1 || filepath.Base(runs[0]) != "1" {
		t.Errorf("runs %q, %v", runs, err)
	}
}

// TestMergeIncompleteProgress: a progress.json without its shards is refused.
func TestMergeIncompleteProgress(t *testing.T) {
	whole := Suite{Format: Format, Shards: []Shard{{1, 2}}, Started: time.Unix(1, 0)}
	for _, s := range []Suite{{Format: Format}, {Format: Format, Missing: []Shard{{1, 2}}}} {
		s.Started = time.Unix(2, 0)
		dir := t.TempDir()
		if err := errors.Join(whole.Write(dir), (Progress{Total: 3, Updated: s.Started, Suite: s}).write(dir)); err != nil {
			t.Fatal(err)
		}
		if _, err := Merge([]string{dir}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "lists no shards") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// TestMergeRefuses: parts of different suites, and rows that contradict each other.
func TestMergeRefuses(t *testing.T) {
	write := func(change func(s *Suite)) string {
		s := Suite{Format: Format, Seed: 1, Repeat: 1, Shards: []Shard{{1, 2}}, Rows: []Row{{Scenario: "a", Number: 1}}}
		change(&s)
		return written(t, s, t.TempDir())
	}
	first := write(func(*Suite) {})
	for what, dir := range map[string]string{
		"another seed":     write(func(s *Suite) { s.Seed = 2 }),
		"other shards":     write(func(s *Suite) { s.Shards = []Shard{{1, 3}} }),
		"another verdict":  write(func(s *Suite) { s.Rows[0].Verdict = checker.Unsafe }),
		"another format":   write(func(s *Suite) { s.Format = 9 }),
		"no suite":         write(func(s *Suite) { *s = Suite{Format: Format} }),
		"runs elsewhere":   write(func(s *Suite) { s.Rows[0].Scenario, s.Rows[0].Run = "b", "../../etc" }),
		"no such a folder": filepath.Join(first, "missing"),
	} {
		if _, err := Merge([]string{first, dir}, t.TempDir()); err == nil {
			t.Errorf("%s: merged", what)
		}
	}
}

func TestParseShard(t *testing.T) {
	for text, want := range map[string]Shard{"": {1, 1}, "1/1": {1, 1}, "2/4": {2, 4}} {
		if got, err := ParseShard(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0/4", "5/4", "2", "a/b", "2/4/6", "-1/4"} {
		if got, err := ParseShard(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
