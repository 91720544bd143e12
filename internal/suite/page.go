package suite

import (
	_ "embed" // the template
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

//go:embed page.tmpl
var pageText string

// grid is the content of a page: a line for each scenario, a column for each suite or night.
type grid struct {
	Sentence string
	Good     bool
	Alerts   []string // verdicts that changed
	Changes  []Change // since the previous suite
	Notes    []string
	Trends   bool // lines have a rate
	Columns  []string
	Lines    []gridLine
	Notable  []gridRow
}

type gridLine struct {
	Scenario        string
	locks, expected changes
	Rates           []gridRate
	Cells           [][]gridRow // of each column
}

// Lock is the tested lock, Expected the verdict that the scenario expects.
func (l gridLine) Lock() string     { return l.locks.String() }
func (l gridLine) Expected() string { return l.expected.String() }

// changes are the values that something has had, in the order of their first use: another lock, or another expectation,
// explains that a verdict changed.
type changes []string

func (c *changes) add(value string) {
	if value != "" && !slices.Contains(*c, value) {
		*c = append(*c, value)
	}
}

func (c changes) String() string { return strings.Join(c, " → ") }

// gridRate is the rate of one backend.
type gridRate struct{ Text, Alert string }

type gridRow struct {
	Row
	Letter, Shown, Reason, Report, Text string
}

// Page writes a page that needs nothing but itself and the runs that were kept.
func (s Suite) Page(w io.Writer) error {
	return s.page(w, s.Sentence())
}

func (s Suite) page(w io.Writer, sentence string) error {
	g := grid{Sentence: sentence, Good: s.ExitCode() == 0, Notes: s.Notes}
	g.add(s.Started.UTC().Format(time.DateTime), s.Rows)
	g.notable(s)
	return g.write(w)
}

// Page writes the page of the last nights.
func (h History) Page(w io.Writer) error {
	nights := h.nights()
	g := grid{Sentence: "no suite was added", Trends: true}
	days := map[string]int{} // suites of each
	for _, n := range nights {
		days[n.start.Format(time.DateOnly)]++
	}
	for _, n := range nights {
		column := n.start.Format(time.DateOnly)
		if days[column] > 1 {
			column = n.start.Format("2006-01-02 15:04")
		}
		g.add(column, recordRows(n.records))
	}
	latest := h.latest()
	if len(nights) > 0 {
		g.Sentence = fmt.Sprintf("%s: %s", g.Columns[len(nights)-1], latest.Sentence())
	}
	g.Good, g.Changes = latest.ExitCode() == 0, h.Changes()
	g.notable(latest)
	for _, t := range h.Trends() {
		line := &g.Lines[g.line(Row{Scenario: t.Scenario})]
		line.Rates = append(line.Rates, gridRate{t.Text(), t.Alert})
		if t.Alert != "" {
			g.Alerts = append(g.Alerts, fmt.Sprintf("%s on %s: %s", t.Scenario, t.Backend, t.Alert))
		}
	}
	return g.write(w)
}

// Text is the rate of a trend.
func (t Trend) Text() string {
	return fmt.Sprintf("%d of %s on %s (%.0f to %.0f %%)", t.Differs, format.Count(t.Runs, "run"), t.Backend, 100*t.Low,
		100*t.High)
}

// add adds a column.
func (g *grid) add(name string, rows []Row) {
	g.Columns = append(g.Columns, name)
	for i := range g.Lines {
		g.Lines[i].Cells = append(g.Lines[i].Cells, nil)
	}
	for _, r := range rows {
		line := &g.Lines[g.line(r)]
		line.locks.add(r.Lock)
		line.expected.add(r.Expected)
		cells := line.Cells
		cells[len(cells)-1] = append(cells[len(cells)-1], gridRowOf(r))
	}
}

// line is the index of the scenario's line, which it adds if necessary.
func (g *grid) line(r Row) int {
	n := slices.IndexFunc(g.Lines, func(l gridLine) bool { return l.Scenario == r.Scenario })
	if n < 0 {
		n = len(g.Lines)
		g.Lines = append(g.Lines, gridLine{Scenario: r.Scenario, Cells: make([][]gridRow, len(g.Columns))})
	}
	return n
}

func (g *grid) notable(s Suite) {
	for _, r := range s.Notable() {
		g.Notable = append(g.Notable, gridRowOf(r))
	}
}

func (g *grid) write(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{"words": strings.Fields}).Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, g)
}

func gridRowOf(r Row) gridRow {
	letter := map[string]string{"safe": "S", "unsafe": "U", "inconclusive": "I"}[string(r.Verdict)]
	if letter == "" {
		letter = "–"
	}
	return gridRow{r, letter, r.Actual(), format.Printable(r.why()), r.report(), r.Outcome.text()}
}
