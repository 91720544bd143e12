package reports

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The elements of JUnit XML that every CI service reads.
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

// writeJUnit writes a suite with a case for the verdict and for each property. A
// case passes if its outcome is the expected one (see [expectations]), so that
// CI stays green while a lock that is known to be unsafe is unsafe. A property
// that is not applicable, or undecided without an expectation, is skipped.
func writeJUnit(r *Run, w io.Writer) error {
	s := junitOf(r)
	all := junitSuites{Tests: s.Tests, Failures: s.Failures, Skipped: s.Skipped, Suites: []junitSuite{s}}
	data, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding JUnit: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, data)
	return err
}

func junitOf(r *Run) junitSuite {
	m := &r.Manifest
	s := junitSuite{Name: format.Printable(r.title())}
	took := r.History.End
	if !m.Started.IsZero() {
		s.Timestamp = m.Started.UTC().Format("2006-01-02T15:04:05")
		if d := m.Finished.Sub(m.Started); d > 0 {
			took = d
		}
	}
	s.Time = fmt.Sprintf("%.3f", took.Seconds())
	results := map[string]*checker.Result{}
	for i := range r.Judgement.Results {
		res := &r.Judgement.Results[i]
		results[string(res.Property)] = res
	}
	for _, e := range expectations(r) {
		c := junitCase{Class: s.Name, Name: format.Printable(e.Name), Out: junitOut(r, e, results[e.Name])}
		switch {
		case !e.Met:
			c.Failure = &junitMsg{Message: e.text(), Text: c.Out}
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

// junitOut is the output of a case: the sentence for the verdict, the worst violations for a property.
func junitOut(r *Run, e expectation, res *checker.Result) string {
	if res == nil {
		lines := []string{r.story.Sentence, "run it again: " + r.Manifest.Repeat, r.path("")}
		return format.Printable(strings.Join(lines, "\n"))
	}
	lines := []string{res.Summary}
	for i, v := range res.Violations {
		if i == 5 {
			lines = append(lines, fmt.Sprintf("and %s more", format.Number(res.Total-i)))
			break
		}
		lines = append(lines, fmt.Sprintf("%s: %s (events %v)", format.Instant(v.Start), v.Text, v.Events))
	}
	if e.Expected != "" {
		lines = append(lines, "expected: "+e.Expected)
	}
	return format.Printable(strings.Join(lines, "\n"))
}
