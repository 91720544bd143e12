package export

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/stats"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// RunDiff is the difference between two runs.
type RunDiff struct {
	A        string         `json:"a"` // id of the run
	B        string         `json:"b"`
	Settings []changedValue `json:"settings,omitempty"` // scenario, lock, seed, backend and versions
	Outcomes []changedValue `json:"outcomes,omitempty"` // verdict, class, properties, thresholds
	Story    []storyPair    `json:"story"`              // both stories, aligned
	Latency  []latencyPair  `json:"latency,omitempty"`
	Grants   [2]int         `json:"grants"`
	// FirstEvent is the first line of the histories that differs; nil: they are equal, or one is not deterministic.
	FirstEvent *eventPair `json:"first_event,omitempty"`
	Equal      bool       `json:"histories_equal"` // byte for byte; false also if one is not deterministic
	// Worse: the verdict, a property or a threshold of b is worse than a's. Latencies alone never are: they depend
	// on the machine, so limit them with thresholds.
	Worse bool `json:"worse"`
}

// changedValue is a value that differs.
type changedValue struct {
	Name  string `json:"name"`
	A     string `json:"a"` // empty: absent
	B     string `json:"b"`
	Worse bool   `json:"worse,omitempty"`
}

// storyPair is a sentence or a step of the first run beside the second's; empty: it has none like it.
type storyPair struct {
	A string `json:"a"`
	B string `json:"b"`
}

// latencyPair are the latencies of an operation; nil: it never succeeded.
type latencyPair struct {
	Op string         `json:"op"`
	A  *stats.Latency `json:"a"`
	B  *stats.Latency `json:"b"`
}

// eventPair is a line of both histories; empty: the history has ended.
type eventPair struct {
	Line int    `json:"line"` // from 1
	A    string `json:"a"`
	B    string `json:"b"`
}

// Diff compares run b with the earlier run a.
func Diff(a, b *evidence.Run) (*RunDiff, error) {
	d := &RunDiff{A: a.Manifest.ID, B: b.Manifest.ID, Grants: [2]int{len(a.Holds), len(b.Holds)}}
	d.Settings = changedValues(settingsOf(a), settingsOf(b))
	d.Outcomes = changedValues(outcomesOf(a), outcomesOf(b))
	for c := range evidence.Each(d.Outcomes) {
		c.Worse = badness(c.B) > badness(c.A)
		d.Worse = d.Worse || c.Worse
	}
	d.Story = alignStories(a.Story, b.Story)
	d.Latency = pairLatencies(stats.Latencies(a.History), stats.Latencies(b.History))
	if !a.Manifest.Deterministic || !b.Manifest.Deterministic || a.Dir == nil || b.Dir == nil {
		return d, nil
	}
	var err error
	d.FirstEvent, err = firstDifference(a.Dir.File(rundir.HistoryFile), b.Dir.File(rundir.HistoryFile))
	d.Equal = err == nil && d.FirstEvent == nil
	return d, err
}

// setting is a value with its name.
type setting struct{ name, value string }

func settingsOf(r *evidence.Run) []setting {
	m := &r.Manifest
	return []setting{{"scenario", m.Scenario}, {"lock", m.Lock}, {"seed", fmt.Sprint(m.Seed)}, {"backend", m.Backend},
		{"clients", fmt.Sprint(r.History.Clients)}, {"chaos", m.Versions["chaos"]}, {"redis", m.Versions["redis"]},
		{"lock version", m.Versions["lock"]}}
}

// The outcomes of thresholds, beside the outcomes of properties.
const thresholdMet, thresholdNotMet = "met", "not met"

func outcomesOf(r *evidence.Run) []setting {
	all := []setting{{expect.Verdict, string(r.Verdict())}, {expect.Class, string(r.Judgement.Class)}}
	for _, res := range r.Judgement.Results {
		all = append(all, setting{string(res.Property), string(res.Outcome)})
	}
	for _, c := range r.Judgement.Thresholds {
		outcome := thresholdMet
		if !c.Met {
			outcome = thresholdNotMet
		}
		all = append(all, setting{c.Name + " " + c.Expected, outcome})
	}
	return all
}

// badness orders verdicts and outcomes; other texts are 0.
func badness(outcome string) int {
	return map[string]int{string(checker.Undecided): 1, string(checker.Inconclusive): 1, string(checker.NotRun): 1,
		string(checker.Violated): 2,
		string(checker.Unsafe):   2, string(checker.OutlivedLease): 1, string(checker.BrokenPromise): 2,
		thresholdNotMet: 2}[outcome]
}

// changedValues are the values that differ, in the order of a.
func changedValues(a, b []setting) (changed []changedValue) {
	find := func(list []setting, name string) string {
		if i := slices.IndexFunc(list, func(n setting) bool { return n.name == name }); i >= 0 {
			return list[i].value
		}
		return ""
	}
	for _, n := range a {
		if was, is := n.value, find(b, n.name); was != is {
			changed = append(changed, changedValue{Name: n.name, A: was, B: is})
		}
	}
	for _, n := range b {
		known := slices.ContainsFunc(a, func(x setting) bool { return x.name == n.name })
		if !known && n.value != "" {
			changed = append(changed, changedValue{Name: n.name, B: n.value})
		}
	}
	return changed
}

// alignStories pairs the sentences, and the steps that say the same but for numbers, in order.
func alignStories(a, b evidence.Story) []storyPair {
	pairs := []storyPair{{A: a.Sentence, B: b.Sentence}}
	rest := b.Steps
	for _, s := range a.Steps {
		text := withoutDigits(s.Text)
		same := slices.IndexFunc(rest, func(other evidence.Step) bool { return withoutDigits(other.Text) == text })
		if same < 0 {
			pairs = append(pairs, storyPair{A: line(s)})
			continue
		}
		for _, other := range rest[:same] {
			pairs = append(pairs, storyPair{B: line(other)})
		}
		pairs = append(pairs, storyPair{A: line(s), B: line(rest[same])})
		rest = rest[same+1:]
	}
	for _, other := range rest {
		pairs = append(pairs, storyPair{B: line(other)})
	}
	return pairs
}

func line(s evidence.Step) string { return format.Instant(s.Time) + " " + s.Text }

func withoutDigits(s string) string { return evidence.Digits.ReplaceAllString(s, "#") }

func pairLatencies(a, b []stats.Latency) (pairs []latencyPair) {
	for i := range a {
		pairs = append(pairs, latencyPair{Op: a[i].Op, A: &a[i]})
	}
	for i := range b {
		at := slices.IndexFunc(pairs, func(p latencyPair) bool { return p.Op == b[i].Op })
		if at < 0 {
			pairs = append(pairs, latencyPair{Op: b[i].Op, B: &b[i]})
			continue
		}
		pairs[at].B = &b[i]
	}
	return pairs
}

// firstDifference is the first line that differs in two files; nil if they are equal.
func firstDifference(a, b string) (*eventPair, error) {
	first, err := os.Open(a)
	if err != nil {
		return nil, err
	}
	defer first.Close()
	second, err := os.Open(b)
	if err != nil {
		return nil, err
	}
	defer second.Close()
	x, y := bufio.NewReader(first), bufio.NewReader(second)
	for line := 1; ; line++ {
		one, errA := x.ReadBytes('\n')
		two, errB := y.ReadBytes('\n')
		if !bytes.Equal(one, two) {
			return &eventPair{line, strings.TrimSpace(string(one)), strings.TrimSpace(string(two))}, nil
		}
		if err := cmp.Or(errA, errB); errors.Is(err, io.EOF) {
			return nil, nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// WriteMarkdown writes the difference for people.
func (d *RunDiff) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A: %s\nB: %s\n", format.Markdown(d.A), format.Markdown(d.B))
	writeChanged(&b, "setting", d.Settings)
	if len(d.Outcomes) == 0 {
		b.WriteString("\nVerdict and properties are the same.\n")
	}
	writeChanged(&b, "outcome", d.Outcomes)
	b.WriteString("\n| A | B |\n| --- | --- |\n")
	for _, p := range d.Story {
		fmt.Fprintf(&b, "| %s | %s |\n", format.MarkdownCodes(p.A), format.MarkdownCodes(p.B))
	}
	fmt.Fprintf(&b, "\n| latency | A: n, p50, p99, max | B: n, p50, p99, max |\n| --- | --- | --- |\n")
	for _, p := range d.Latency {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.Op, latencyText(p.A), latencyText(p.B))
	}
	fmt.Fprintf(&b, "\n%s in A, %s in B.\n", format.Count(d.Grants[0], "grant"), format.Number(d.Grants[1]))
	if d.Equal {
		b.WriteString("\nThe histories are equal, byte for byte.\n")
	}
	if e := d.FirstEvent; e != nil {
		const limit = 300
		fmt.Fprintf(&b, "\nThe histories differ first in line %s:\n\n    A %s\n    B %s\n", format.Number(e.Line),
			format.Truncate(format.Line(cmp.Or(e.A, "(end)")), limit), format.Truncate(format.Line(cmp.Or(e.B, "(end)")), limit))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeChanged(b *strings.Builder, what string, changed []changedValue) {
	if len(changed) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| %s | A | B |\n| --- | --- | --- |\n", what)
	for _, c := range changed {
		now := format.Markdown(cmp.Or(c.B, "-"))
		if c.Worse {
			now = "**" + now + "** (worse)"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", format.Markdown(c.Name), format.Markdown(cmp.Or(c.A, "-")), now)
	}
}

func latencyText(l *stats.Latency) string {
	if l == nil {
		return "none"
	}
	parts := []string{format.Number(l.N)}
	for _, d := range []time.Duration{l.P50, l.P99, l.Max} {
		parts = append(parts, format.Duration(d))
	}
	return strings.Join(parts, ", ")
}
