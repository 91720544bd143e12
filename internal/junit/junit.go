// Package junit writes test results in JUnit XML, with the elements that every CI service reads.
//
// Read [Suite] first.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
)

// Suite is a list of cases. [Write] counts them.
type Suite struct {
	Name       string      `xml:"name,attr"`
	Tests      int         `xml:"tests,attr"`
	Failures   int         `xml:"failures,attr"`
	Errors     int         `xml:"errors,attr,omitempty"`
	Skipped    int         `xml:"skipped,attr"`
	Time       string      `xml:"time,attr"`
	Timestamp  string      `xml:"timestamp,attr,omitempty"`
	Properties *Properties `xml:"properties,omitempty"`
	Cases      []Case      `xml:"testcase"`
}

// Case is one test. It passed if it neither failed, nor could not be made, nor was skipped.
type Case struct {
	Class      string      `xml:"classname,attr"`
	Name       string      `xml:"name,attr"`
	Time       string      `xml:"time,attr,omitempty"`
	Properties *Properties `xml:"properties,omitempty"`
	Failure    *Message    `xml:"failure,omitempty"`
	Error      *Message    `xml:"error,omitempty"` // it could not be made: the environment, not the code under test
	Skipped    *Message    `xml:"skipped,omitempty"`
	Out        string      `xml:"system-out,omitempty"`
}

// Properties are names and values that services show beside a case.
type Properties struct {
	List []Property `xml:"property"`
}

// Property is one of them.
type Property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// Message is why a case failed or was skipped.
type Message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// suites is the root of the document.
type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr,omitempty"`
	Skipped  int      `xml:"skipped,attr"`
	Suites   []Suite  `xml:"testsuite"`
}

// Write writes a document with one suite. Its texts must be valid XML characters; see format.Printable.
func Write(w io.Writer, s Suite) error {
	s.Tests, s.Failures, s.Errors, s.Skipped = len(s.Cases), 0, 0, 0
	for _, c := range s.Cases {
		switch {
		case c.Error != nil:
			s.Errors++
		case c.Failure != nil:
			s.Failures++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	all := suites{Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Skipped: s.Skipped, Suites: []Suite{s}}
	data, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding JUnit: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, data)
	return err
}
