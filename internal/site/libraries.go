package site

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/internal/evaluation"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/lab/libraries"
)

// results are the tests of the locks of other libraries, in the repository.
const results = "internal/lab/libraries/results.json"

// libraries writes a page for each library with an adapter, and one with a table of them.
func (o Options) libraries() error {
	all, err := libraries.Load(filepath.Join(o.Root, results))
	if err != nil {
		return err
	}
	catalog, err := adapters.Catalog()
	if err != nil {
		return err
	}
	found, err := os.ReadFile(filepath.Join(o.Root, "docs", "contributors", "found.md"))
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# Is it safe?\n\nThe locks of these libraries were tested by [chaos test](../how-to/test.md) on real " +
		"servers, two to four minutes each. A finding is a violation that a correct lock with the same promises does not " +
		"have; a lock without a finding is not proven to be correct. [Verdicts](../contributors/verdicts.md) lists all of " +
		"them on one page; [stories](../stories/index.md) describes scenarios of these tests.\n\n" +
		"| library | version | language | locks | findings |\n| --- | --- | --- | --- | --- |\n")
	var pages []string
	for _, a := range catalog {
		tests := testsOf(a, all)
		fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s | %s | %s |\n", a.Library, a.Library, a.Version, a.Language,
			strings.Join(format.Texts(a.Kinds, func(k adapters.Kind) string { return k.Name }), ", "), causesOf(tests))
		pages = append(pages, a.Library)
		text, err := o.library(a, tests, string(found))
		if err != nil {
			return err
		}
		if err := o.page("safe/"+a.Library, text); err != nil {
			return err
		}
	}
	return o.page("safe/index", b.String()+contents(pages...))
}

func testsOf(a adapters.Adapter, all []evaluation.Report) (tests []evaluation.Report) {
	for _, r := range all {
		if library, _, _ := strings.Cut(r.Lock, "/"); library == a.Library {
			tests = append(tests, r)
		}
	}
	return tests
}

// causesOf names the findings of tests.
func causesOf(tests []evaluation.Report) string {
	var names []string
	for _, r := range tests {
		for _, f := range r.Own() {
			names = append(names, f.ID())
		}
		for _, f := range r.Client {
			names = append(names, "client: "+f.Check)
		}
	}
	if len(tests) == 0 {
		return "not tested"
	}
	slices.Sort(names)
	return orNone(slices.Compact(names))
}

// library is the page of a library.
func (o Options) library(a adapters.Adapter, tests []evaluation.Report, found string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s %s\n\n[%s](%s) is written in %s. Findings of its own: %s.\n\n## Promises\n\n"+
		"A lock is judged by its [promises](../reference/promises.md) alone.\n\n"+
		"| lock | description | servers | promises |\n| --- | --- | --- | --- |\n", a.Library, a.Version, a.Library,
		a.Homepage, a.Language, causesOf(tests))
	for _, k := range a.Kinds {
		fmt.Fprintf(&b, "| `%s/%s` | %s | %s | %s |\n", a.Library, k.Name, cell(k.Doc), strings.Join(k.Topologies, ", "),
			strings.Join(k.Can.Names(), ", "))
	}
	b.WriteString("\n## Verdicts\n\n" + libraries.TableHead)
	for _, r := range tests {
		b.WriteString(libraries.Row(r))
	}
	b.WriteString("\nThe last column lists violations that no lock with these promises prevents.\n\n## Findings\n")
	n := 0
	for _, r := range tests {
		for _, f := range r.Own() {
			n++
			b.WriteString(o.finding(r, f))
		}
		for _, f := range r.Client {
			n++
			fmt.Fprintf(&b, "\n### %s: %s\n\n%s\n%s", r.Lock, f.Check, cell(f.Detail), command("chaos doctor --lock "+r.Lock))
		}
	}
	if n == 0 {
		b.WriteString("\nNone in these tests.\n")
	}
	b.WriteString(foundRows(a.Library, found))
	readme := path.Join("adapters", a.Library, "README.md")
	text, err := os.ReadFile(filepath.Join(o.Root, readme))
	if err != nil {
		return "", err
	}
	_, notes, _ := strings.Cut(string(text), "\n")
	notes, err = o.moved(notes, readme, "safe/"+a.Library+".md")
	fmt.Fprintf(&b, "\n## How it was tested\n%s\n## Versions\n\n| lock | tested on | by chaos |\n| --- | --- | --- |\n",
		notes)
	for _, r := range tests {
		fmt.Fprintf(&b, "| %s of %s %s | %s | %s |\n", r.Lock, a.Library, a.Version, r.Started.Format("2006-01-02"),
			r.Version)
	}
	return b.String(), err
}

// finding is a part of the page of a library.
func (o Options) finding(r evaluation.Report, f evaluation.Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s: %s\n\n%s.\n\n", r.Lock, f.ID(), cell(f.Sentence))
	if why := libraries.Why(r.Lock, f); why != "" {
		fmt.Fprintf(&b, "**Cause:** %s.\n\n", cell(why))
	}
	fmt.Fprintf(&b, "Violated: %s, %s.\n", f.Property, f.Frequency())
	if name := libraries.Picture(r.Lock, f); exists(filepath.Join(o.Root, name)) {
		fmt.Fprintf(&b, "\n![Holds of the lock over time in such a run](../%s)\n", strings.TrimPrefix(name, "docs/"))
	}
	b.WriteString(command(f.Repeat))
	return b.String()
}

// foundRows are the rows about a library in the table of docs/contributors/found.md.
func foundRows(library, found string) string {
	var b strings.Builder
	name := regexp.MustCompile(`(?i)(^|[\s/;])` + regexp.QuoteMeta(library) + `([\s,;]|$)`)
	for line := range strings.Lines(found) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) == 6 && name.MatchString(cells[0]) {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cells[1], cells[2], cells[3], cells[4])
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n### In longer tests\n\nFrom [found](../contributors/found.md):\n\n" +
		"| what happens | command | runs | cause |\n| --- | --- | --- | --- |\n" + b.String()
}
