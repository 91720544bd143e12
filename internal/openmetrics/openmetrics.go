// Package openmetrics writes the text format of OpenMetrics 1.0 (openmetrics.io).
package openmetrics

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// Writer collects metric families, one after the other, each with its samples. The zero value is empty.
type Writer struct {
	b      strings.Builder
	family string
}

// Label is the name and the value of a label.
type Label struct{ name, value string }

// Is returns the label name="value".
func Is(name, value string) Label { return Label{name, value} }

// Start begins a metric family.
func (m *Writer) Start(name, kind, unit, help string) {
	m.family = name
	fmt.Fprintf(&m.b, "# TYPE %s %s\n", name, kind)
	if unit != "" {
		fmt.Fprintf(&m.b, "# UNIT %s %s\n", name, unit)
	}
	fmt.Fprintf(&m.b, "# HELP %s %s\n", name, help)
}

// Sample adds a sample of the family that was started last.
func (m *Writer) Sample(suffix string, value float64, labels ...Label) {
	m.b.WriteString(m.family + suffix)
	for i, l := range labels {
		m.b.WriteString([]string{"{", ","}[min(i, 1)] + l.name + `="` + escape(l.value) + `"`)
	}
	if len(labels) > 0 {
		m.b.WriteString("}")
	}
	m.b.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// escape escapes a label's value.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(format.Line(s))
}

// Seconds adds a gauge family with one sample, in seconds.
func (m *Writer) Seconds(name, help string, d time.Duration) {
	m.Start(name, "gauge", "seconds", help)
	m.Sample("", d.Seconds())
}

// States adds a state set: 1 for the current state, is, and 0 for the others. An empty help continues the family that
// was started last.
func (m *Writer) States(name, help, is string, labels []Label, all ...string) {
	if help != "" {
		m.Start(name, "stateset", "", help)
	}
	for _, s := range all {
		value := 0.0
		if s == is {
			value = 1
		}
		m.Sample("", value, append(slices.Clone(labels), Label{name, s})...)
	}
}

// End writes all families and the end marker to w.
func (m *Writer) End(w io.Writer) error {
	m.b.WriteString("# EOF\n")
	_, err := io.WriteString(w, m.b.String())
	return err
}
