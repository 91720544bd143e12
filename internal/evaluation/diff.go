package evaluation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/evaluation/tally"
	"github.com/lockchaos/lockchaos/internal/format"
)

// ChangeKind is the kind of a difference between two tests.
type ChangeKind string

// The kinds, the most important first.
const (
	New  ChangeKind = "new"  // only in the second test
	Gone ChangeKind = "gone" // only in the first test
	Same ChangeKind = "same" // in both
)

// Difference has the findings and properties of two tests.
type Difference struct {
	Before   string          `json:"before"` // the result of the first test in one sentence
	After    string          `json:"after"`
	Findings []FindingChange `json:"findings,omitempty"`
	Held     []HeldChange    `json:"held,omitempty"`
	Worse    bool            `json:"worse"` // a new finding of the lock itself, which the baseline does not accept
}

// FindingChange is a finding of one of the tests or of both.
type FindingChange struct {
	Kind     ChangeKind `json:"kind"`
	Finding  string     `json:"finding"` // the cause, or the property if the cause is not known, and the class
	Own      bool       `json:"own"`     // of the lock itself; else of any lock of its kind
	Accepted string     `json:"accepted,omitempty"`
	Before   string     `json:"before,omitempty"` // the frequency; empty: in no run
	After    string     `json:"after,omitempty"`
	Worse    bool       `json:"worse"`
	Sentence string     `json:"sentence"` // of the later test that has it
	Repeat   string     `json:"repeat"`
}

// HeldChange is a property that held in one of the tests or in both.
type HeldChange struct {
	Property checker.Property `json:"property"`
	Before   string           `json:"before,omitempty"` // runs and counts; empty: it did not hold
	After    string           `json:"after,omitempty"`
}

// file is the test.json that a path names, directly or by its directory.
func file(path string) string {
	if filepath.Base(path) == JSONFile {
		return path
	}
	return filepath.Join(path, JSONFile)
}

// Is reports whether path is the result of a test: its directory, or test.json.
func Is(path string) bool {
	_, err := os.Stat(file(path))
	return err == nil
}

// read reads the result of a test.
func read(path string) (r Report, err error) {
	text, err := os.ReadFile(file(path))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && r.Format != Format {
		err = fmt.Errorf("format %d; this program reads format %d", r.Format, Format)
	}
	if err != nil {
		return r, fmt.Errorf("reading the test in %s: %w", path, err)
	}
	return r, nil
}

// DiffOf compares the test at path b with the earlier one at a, each a directory or a test.json.
func DiffOf(a, b string) (Difference, error) {
	first, err := read(a)
	if err != nil {
		return Difference{}, err
	}
	second, err := read(b)
	return diff(first, second), err
}

// diff compares test b with the earlier test a; new findings come first.
func diff(a, b Report) Difference {
	d := Difference{Before: a.Sentence(), After: b.Sentence()}
	for _, f := range b.Findings {
		c := FindingChange{Kind: New, Finding: f.Name(), Own: f.Own, Accepted: f.Accepted, After: f.Frequency(),
			Sentence: f.Sentence, Repeat: f.Repeat}
		if i := slices.IndexFunc(a.Findings, f.Same); i >= 0 {
			c.Kind, c.Before = Same, a.Findings[i].Frequency()
		}
		c.Worse = c.Kind == New && f.Own && f.Accepted == ""
		d.Worse = d.Worse || c.Worse
		d.Findings = append(d.Findings, c)
	}
	for _, f := range a.Findings {
		if !slices.ContainsFunc(b.Findings, f.Same) {
			d.Findings = append(d.Findings, FindingChange{Kind: Gone, Finding: f.Name(), Own: f.Own, Accepted: f.Accepted,
				Before: f.Frequency(), Sentence: f.Sentence, Repeat: f.Repeat})
		}
	}
	order := []ChangeKind{New, Gone, Same}
	slices.SortStableFunc(d.Findings, func(x, y FindingChange) int {
		return cmp.Or(cmp.Compare(slices.Index(order, x.Kind), slices.Index(order, y.Kind)), tally.First(x.Own, y.Own))
	})
	for _, p := range checker.Catalog() {
		c := HeldChange{p.Name, held(a, p.Name), held(b, p.Name)}
		if c.Before != "" || c.After != "" {
			d.Held = append(d.Held, c)
		}
	}
	return d
}

// held is the number of runs of a test in which a property held, and the counts; "": it held in none.
func held(r Report, p checker.Property) string {
	for _, h := range r.Held {
		if h.Property == p {
			return strings.TrimSuffix(h.Frequency()+": "+h.Text, ": ")
		}
	}
	return ""
}

// Markdown writes d as Markdown.
func (d Difference) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Before: %s. Now: %s.\n", format.Markdown(d.Before), format.Markdown(d.After))
	if len(d.Findings) > 0 {
		b.WriteString("\n| change | finding | before | now | why | run it again |\n| --- | --- | --- | --- | --- | --- |\n")
	}
	for _, c := range d.Findings {
		kind, whose := string(c.Kind), "any lock of this kind"
		if c.Worse {
			kind = "**" + kind + "**"
		}
		if c.Own {
			whose = "your lock"
		}
		if c.Accepted != "" {
			whose += ", accepted by " + c.Accepted
		}
		fmt.Fprintf(&b, "| %s | %s: %s | %s | %s | %s | <code>%s</code> |\n", kind, format.Markdown(whose),
			format.Markdown(c.Finding), cmp.Or(c.Before, "in no run"), cmp.Or(c.After, "in no run"),
			format.Markdown(tally.Plain(c.Sentence)), format.Markdown(c.Repeat))
	}
	if len(d.Held) > 0 {
		b.WriteString("\n| property | held before | holds now |\n| --- | --- | --- |\n")
	}
	for _, h := range d.Held {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", h.Property, cmp.Or(h.Before, "no"), cmp.Or(h.After, "no"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
