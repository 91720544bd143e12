package mutants

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// BugList is docs/contributors/bugs.md: bugs of other libraries that the harness has shown, in the library itself or
// planted in package lock.
type BugList struct {
	planted  []plantedBug
	shown    []shownBug
	Distinct int // bugs, of which each counts once
}

// plantedBug is a report in the tracker of a library, and a convicted row that plants the bug in package lock.
type plantedBug struct {
	source string // LIBRARY#NUMBER
	row    Row
	result Result
}

// shownBug was reproduced in the library.
type shownBug struct {
	what, runs, command string
	page                string // that has more about it
	same                string // the source of a planted bug that is the same one; "": none
}

// trackers are the repositories of the libraries that sources name.
//
//nolint:gochecknoglobals // never changed
var trackers = map[string]string{
	"redisson": "redisson/redisson", "redsync": "go-redsync/redsync", "node-redlock": "mike-marcacci/node-redlock",
	"redlock-rb": "leandromoreira/redlock-rb", "open-match": "googleforgames/open-match",
	"etcd": "etcd-io/etcd", "kazoo": "python-zk/kazoo",
}

// sameBug are the hypotheses about a bug that a tracker knows by another text.
//
//nolint:gochecknoglobals // never changed
var sameBug = map[string]string{"S25": "redsync#140", "S30": "node-redlock#168", "S37": "redisson#7367"}

var (
	issueSource = regexp.MustCompile(`^([\w-]+)#\d+$`)
	issueNumber = regexp.MustCompile(`#\d+`)
	codeText    = regexp.MustCompile("`[^`]+`")
	runCount    = regexp.MustCompile(` \d+$`)
)

// Bugs lists them from the table of planted bugs and the pages docs/contributors/hypotheses.md and
// docs/contributors/found.md.
func Bugs(rows []Row, r Report, hypotheses, found string) BugList {
	var b BugList
	sources := map[string]bool{}
	for _, row := range rows {
		got := r.Results[row.Name]
		if issueSource.MatchString(row.Source) && row.Harmless == "" && got.Convicted && !sources[row.Source] {
			sources[row.Source] = true
			b.planted = append(b.planted, plantedBug{row.Source, row, got})
		}
	}
	slices.SortFunc(b.planted, func(x, y plantedBug) int {
		return strings.Compare(sortable(x.source), sortable(y.source))
	})
	b.Distinct = len(b.planted)
	commands := map[string]bool{}
	for _, cells := range tableRows(hypotheses, "hypothesis") { // id, hypothesis, result, tried by
		if !strings.HasPrefix(cells[2], "reproduced") {
			continue
		}
		for _, command := range codeText.FindAllString(cells[3], -1) {
			commands[baseCommand(command)] = true
		}
		runs := upTo(cells[2], ": ", " (", "; ")
		b.add(shownBug{cells[0] + ": " + cells[1], runs, cells[3], "hypotheses.md", sameBug[cells[0]]})
	}
	for _, cells := range tableRows(found, "library") { // library, what happens, show it, runs, cause, tracker
		tried := func(c string) bool { return commands[baseCommand(c)] }
		if slices.ContainsFunc(codeText.FindAllString(cells[2], -1), tried) {
			continue
		}
		same := ""
		for _, number := range issueNumber.FindAllString(cells[5], -1) {
			if s := strings.ToLower(strings.Fields(cells[0])[0]) + number; sources[s] {
				same = s
			}
		}
		b.add(shownBug{cells[0] + ": " + cells[1], cells[3], cells[2], "found.md", same})
	}
	return b
}

func (b *BugList) add(s shownBug) {
	b.shown = append(b.shown, s)
	if s.same == "" {
		b.Distinct++
	}
}

// sortable is a source whose number sorts by its value.
func sortable(source string) string {
	library, number, _ := strings.Cut(source, "#")
	return fmt.Sprintf("%s#%9s", library, number)
}

// baseCommand is a command without the number of runs.
func baseCommand(code string) string { return runCount.ReplaceAllString(strings.Trim(code, "`"), "") }

// upTo is s up to the first of some texts.
func upTo(s string, ends ...string) string {
	for _, end := range ends {
		s, _, _ = strings.Cut(s, end)
	}
	return s
}

// tableRows are the rows of the Markdown tables with a column of that name.
func tableRows(page, column string) (rows [][]string) {
	within := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			within = false
		case strings.Contains(line, "| "+column+" |"):
			within = true
		case within && !strings.HasPrefix(line, "| ---"):
			cells := strings.Split(strings.Trim(line, "|"), " | ")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

//go:embed bugs.md
var bugsHead string

// String is the page.
func (b BugList) String() string {
	var s strings.Builder
	same := len(b.planted) + len(b.shown) - b.Distinct
	fmt.Fprintf(&s, bugsHead, b.Distinct, len(b.planted), len(b.shown), same)
	for _, p := range b.planted {
		library, number, _ := strings.Cut(p.source, "#")
		link := p.source
		if repository, ok := trackers[library]; ok {
			link = fmt.Sprintf("[%s](https://github.com/%s/issues/%s)", p.source, repository, number)
		}
		fmt.Fprintf(&s, "| %s | %s | %s (%s) | `go run ./internal/lab/mutants/run -again all -only '^%s/%s$'` |\n",
			link, p.row.Harm, p.result.By, p.result.Property, p.row.Kind, p.row.Name)
	}
	s.WriteString("\n## In the libraries\n\n| bug | shown | command | more |\n| --- | --- | --- | --- |\n")
	for _, f := range b.shown {
		more := fmt.Sprintf("[%s](%s)", strings.TrimSuffix(f.page, ".md"), f.page)
		if f.same != "" {
			more += ", also " + f.same
		}
		fmt.Fprintf(&s, "| %s | %s | %s | %s |\n", f.what, f.runs, f.command, more)
	}
	return s.String()
}
