package reports

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The elements of JUnit XML that every CI service understands.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr,omitempty"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string    `xml:"classname,attr"`
	Name    string    `xml:"name,attr"`
	Failure *junitMsg `xml:"failure,omitempty"`
	Skipped *junitMsg `xml:"skipped,omitempty"`
	Out     string    `xml:"system-out,omitempty"`
}

type junitMsg struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes several runs as one JUnit file: a suite for each run, a case
// for the verdict and for each property. A case fails if it did not come out as
// expected (see [Expectations]), so that a lock that is known to break is a
// green line for as long as it breaks. A property that the run had nothing to
// say about, or that was not decided and not expected, is skipped.
func WriteJUnit(w io.Writer, runs ...*Run) error {
	var all junitSuites
	for _, r := range runs {
		s := junitOf(r)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Skipped += s.Skipped
		all.Suites = append(all.Suites, s)
	}
	data, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding JUnit: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, data)
	return err
}

func writeJUnit(r *Run, w io.Writer) error { return WriteJUnit(w, r) }

func junitOf(r *Run) junitSuite {
	m := &r.Manifest
	s := junitSuite{Name: plain(r.title())}
	if !m.Started.IsZero() {
		s.Timestamp = m.Started.UTC().Format("2006-01-02T15:04:05")
	}
	if d := m.Finished.Sub(m.Started); d > 0 && !m.Started.IsZero() {
		s.Time = fmt.Sprintf("%.3f", d.Seconds())
	} else {
		s.Time = fmt.Sprintf("%.3f", r.History.End.Seconds())
	}
	results := map[string]*checker.Result{}
	for i := range r.Judgement.Results {
		res := &r.Judgement.Results[i]
		results[string(res.Property)] = res
	}
	for _, e := range Expectations(r) {
		c := junitCase{Class: s.Name, Name: plain(e.Name), Out: junitOut(r, e, results[e.Name])}
		switch {
		case !e.Met:
			c.Failure = &junitMsg{Message: fmt.Sprintf("%s: %s%s", e.Name, orNone(e.Actual), wanted(e.Expected)), Text: c.Out}
			s.Failures++
		case e.Expected == "" && (e.Actual == string(checker.Undecided) || e.Actual == string(checker.NotApplicable)):
			c.Skipped = &junitMsg{Message: e.Actual}
			s.Skipped++
		}
		s.Cases = append(s.Cases, c)
	}
	s.Tests = len(s.Cases)
	return s
}

// junitOut is what a case says: the story for the verdict, the worst violations for a property.
func junitOut(r *Run, e Expectation, res *checker.Result) string {
	if res == nil {
		return plain(strings.Join([]string{r.story.Sentence, "run it again: " + r.Manifest.Repeat, r.path("")}, "\n"))
	}
	lines := []string{res.Summary}
	for i, v := range res.Violations {
		if i == 5 {
			lines = append(lines, fmt.Sprintf("and %d more", res.Total-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s: %s (events %v)", format.Instant(v.Start), v.Text, v.Events))
	}
	if e.Expected != "" {
		lines = append(lines, "expected: "+e.Expected)
	}
	return plain(strings.Join(lines, "\n"))
}
