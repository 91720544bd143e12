package mutants

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	lua "github.com/yuin/gopher-lua/parse"
)

const root = "../../.."

// allTargets loads every scenario with every lock, once for all tests.
var allTargets = sync.OnceValues(AllTargets)

func rowsOf(t *testing.T) []Row {
	t.Helper()
	rows, err := Rows()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestRowsApply(t *testing.T) {
	names := map[string]bool{}
	planted, harmless := 0, 0
	for _, r := range rowsOf(t) {
		if names[r.Name] {
			t.Errorf("there are two rows %s", r.Name)
		}
		names[r.Name] = true
		if (r.Harm == "") == (r.Harmless == "") {
			t.Errorf("%s: say either what harm it does or why it is harmless", r.Name)
		}
		if r.Equivalent != "" && r.Harm == "" {
			t.Errorf("%s: it is equivalent, so say what harm it seems to do", r.Name)
		}
		if r.Harm != "" {
			planted++
		} else {
			harmless++
		}
		source, err := os.ReadFile(filepath.Join(root, "lock", r.File))
		if err != nil {
			t.Error(err)
			continue
		}
		text, err := r.Apply(string(source))
		if err != nil {
			t.Error(err)
			continue
		}
		if err := parse(r, text); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
	if planted < 150 || harmless < 25 {
		t.Errorf("%d planted bugs and %d harmless changes, want at least 150 and 25", planted, harmless)
	}
}

func parse(r Row, text string) error {
	if r.Lua() {
		_, err := lua.Parse(strings.NewReader(text), r.File)
		return err
	}
	_, err := parser.ParseFile(token.NewFileSet(), r.File, text, parser.SkipObjectResolution)
	return err
}

func TestEveryKindHasTargetsAndRows(t *testing.T) {
	rows := rowsOf(t)
	targets, err := allTargets()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds() {
		if len(targets[kind]) == 0 {
			t.Errorf("no scenario reaches the kind %s", kind)
		}
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.Kind == kind }) {
			t.Errorf("the kind %s has no row", kind)
		}
	}
	for _, r := range rows {
		for _, name := range r.First {
			if !slices.ContainsFunc(targets[r.Kind], func(o Target) bool { return o.String() == name }) {
				t.Errorf("%s: scenario %q is not one of its kind", r.Name, name)
			}
		}
	}
}

func TestDocumentIsOfTheStoredResults(t *testing.T) {
	report, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"docs/contributors/detection.md":  Document(rowsOf(t), report),
		"docs/contributors/detection.tsv": Data(rowsOf(t), report),
	} {
		got, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s differs from the results: run `go run ./internal/lab/mutants/run -document`", file)
		}
		if rows := strings.Count(want, "\n") - 1; file == "docs/contributors/detection.tsv" && rows != len(rowsOf(t)) {
			t.Errorf("%s has %d rows of %d", file, rows, len(rowsOf(t)))
		}
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := Figure(rowsOf(t), report); !strings.Contains(strings.Join(strings.Fields(string(readme)), " "), want) {
		t.Errorf("README.md does not say %q", want)
	}
}

// TestBugsOfOtherLibraries: the list is current, and long enough to say that most known kinds of bugs are seen.
func TestBugsOfOtherLibraries(t *testing.T) {
	report, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	page := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, "docs/contributors", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	list := Bugs(rowsOf(t), report, page("hypotheses.md"), page("found.md"))
	if page("bugs.md") != list.String() {
		t.Error("docs/contributors/bugs.md is not what its sources say: run `go run ./internal/lab/mutants/run -document`")
	}
	for _, p := range list.planted {
		if library, _, _ := strings.Cut(p.source, "#"); trackers[library] == "" {
			t.Errorf("the tracker of %q is not known", library)
		}
	}
	const least = 60
	if list.Distinct < least {
		t.Errorf("%d bugs of other libraries, want %d at least", list.Distinct, least)
	}
}

// TestBugsCountOnce: several rows of one report, a hypothesis that was found too, and one of a report that was planted.
func TestBugsCountOnce(t *testing.T) {
	rows := []Row{
		{Name: "a", Kind: "mutex", Source: "redsync#140"}, {Name: "b", Kind: "mutex", Source: "redsync#140"},
		{Name: "c", Kind: "mutex", Source: "redsync#7"}, {Name: "d", Kind: "mutex", Source: "RedLock, by its text"},
		{Name: "e", Kind: "mutex", Source: "redsync#8"},
	}
	report := Report{Results: map[string]Result{
		"a": {Convicted: true}, "b": {Convicted: true}, "c": {}, "d": {Convicted: true}, "e": {Convicted: true},
	}}
	const hypotheses = "| id | hypothesis | result | tried by |\n| --- | --- | --- | --- |\n" +
		"| S25 | slow | reproduced, 2 of 2: it is | `x S25 2` |\n" +
		"| S90 | lost | reproduced, 3 of 3 | `x S90 3` |\n| S91 | no | not reproduced | |\n"
	const found = "| library | what happens | show it | runs | cause | tracker |\n" +
		"| --- | --- | --- | --- | --- | --- |\n" +
		"| L | lost | `x S90 10` | 3 of 3 | c | none |\n| redsync 1 | twice | `y` | 1 of 1 | c | #8 |\n" +
		"| L | other | `z` | 1 of 1 | c | none |\n"
	list := Bugs(rows, report, hypotheses, found)
	if len(list.planted) != 2 || len(list.shown) != 4 || list.Distinct != 4 {
		t.Errorf("%d planted, %d shown, %d distinct; want 2, 4 and 4", len(list.planted), len(list.shown), list.Distinct)
	}
}

func TestDrawnRowsDependOnTheText(t *testing.T) {
	rows := rowsOf(t)
	drawn := Draw(rows, "a commit", 10)
	if n := len(drawn); n < len(rows)/20 || n > len(rows)/5 {
		t.Errorf("%d of %d rows were drawn, want about a tenth", n, len(rows))
	}
	same := func(a, b Row) bool { return a.Name == b.Name }
	if !slices.EqualFunc(drawn, Draw(rows, "a commit", 10), same) {
		t.Error("the same text draws other rows")
	}
	if slices.EqualFunc(drawn, Draw(rows, "another commit", 10), same) {
		t.Error("another text draws the same rows")
	}
}

func TestJudge(t *testing.T) {
	convicted, bug, twin := Result{Convicted: true}, Row{Harm: "x"}, Row{Harmless: "x"}
	for _, c := range []struct {
		name        string
		row         Row
		before, now Result
		bad         bool
	}{
		{"convicted again", bug, convicted, convicted, false},
		{"not any more", bug, convicted, Result{}, true},
		{"slow to convict", bug, Result{Convicted: true, CPU: 2 * quick}, Result{}, false},
		{"never was", bug, Result{}, Result{}, false},
		{"harmless convicted", twin, Result{}, convicted, true},
		{"harmless convicted again", twin, convicted, convicted, false},
		{"harmless", twin, Result{}, Result{}, false},
	} {
		if got := Judge(c.row, c.before, c.now); (got != "") != c.bad {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// TestStartWith: a check begins where the stored result began, or its processor time is not comparable.
func TestStartWith(t *testing.T) {
	targets, err := allTargets()
	if err != nil {
		t.Fatal(err)
	}
	row := Row{Name: "x", Kind: "mutex", First: []string{"mixed"}}
	all := targets.Of(row)
	by := all[len(all)-1]
	got := targets.Of(StartWith(row, Result{Convicted: true, By: by}))
	if got[0].String() != by.String() || got[1].String() != "mixed" || len(got) != len(all) {
		t.Errorf("%v and then %v of %d, want %v, mixed of %d", got[0], got[1], len(got), by, len(all))
	}
	if got := targets.Of(StartWith(row, Result{By: by})); got[0].String() != "mixed" {
		t.Errorf("%v first for a survivor, want mixed", got[0])
	}
}

// TestOtherLayout: rows of the scripts of another layout are explored with the lock that has it, and no others are.
func TestOtherLayout(t *testing.T) {
	all, err := allTargets()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"script/redisson_release.lua", "script/release.lua"} {
		row := Row{Kind: "mutex", File: file}
		targets := all.Of(row)
		if len(targets) == 0 {
			t.Errorf("%s: no targets", row.File)
		}
		for _, target := range targets {
			if hasOtherLayout(target) != ofOtherLayout(row) {
				t.Errorf("%s is explored with %s", row.File, target)
			}
		}
	}
	named := all.Of(Row{Kind: "mutex", File: "script/release.lua", First: []string{"mixed-shop"}})
	if named[0].Scenario != "mixed-shop" {
		t.Errorf("a scenario that a row names is not first: %s", named[0])
	}
}
