package explore

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// Command is the command that repeats the run.
func (j Job) Command() string {
	name := j.Name
	if name == "" {
		name = "FILE"
	}
	text := fmt.Sprintf("chaos run --scenario %s --backend sim --seed %d", name, j.Seed)
	if j.Variation != 0 {
		text += fmt.Sprintf(" --variation %d", j.Variation)
	}
	return text
}

// WriteFindings writes, for people, the numbers of runs by verdict, and the findings.
func (r Report) WriteFindings(w io.Writer) {
	fmt.Fprintf(w, "%s\n", r.speed())
	fmt.Fprintf(w, "unsafe %s · safe %s · inconclusive %s · failed %s\n", share(r.Unsafe, r.Runs), share(r.Safe, r.Runs),
		share(r.Inconclusive, r.Runs), share(r.Failed, r.Runs))
	if r.Varied+r.Priorities > 0 {
		fmt.Fprintf(w, "%s repeated a plan with different timing, %s delivered messages by priority\n",
			format.Count(r.Varied, "run"), format.Count(r.Priorities, "run"))
	}
	if r.Repeated > 0 {
		fmt.Fprintf(w, "%s repeated with the same history, byte by byte\n", format.Count(r.Repeated, "run"))
	}
	if r.Undrawn > 0 {
		fmt.Fprintf(w, "%s left out: no scenario could be drawn\n", format.Count(r.Undrawn, "seed"))
	}
	if r.Stopped != "" {
		fmt.Fprintf(w, "stopped before the last seed: %s\n", format.Line(r.Stopped))
	}
	if len(r.Findings) > 0 {
		fmt.Fprintf(w, "%s of violation:\n", format.Count(len(r.Findings), "kind"))
	}
	for i, f := range r.Findings {
		fmt.Fprintf(w, "\n%s: %s, first with seed %d after %s\n  rule: %s\n", f.Kind, format.Count(f.Runs, "run"), f.Seed,
			format.Duration(f.At), f.Kind.Rule)
		if i > 0 && f.Seed == r.Findings[i-1].Seed && f.Variation == r.Findings[i-1].Variation {
			fmt.Fprintf(w, "  the same run as above\n")
			continue
		}
		f.write(w)
	}
}

// write writes the first run of a finding.
func (f Finding) write(w io.Writer) {
	fmt.Fprintf(w, "  %s\n", format.Line(f.Sentence))
	if f.Dir != "" {
		fmt.Fprintf(w, "  kept in %s\n", format.Line(f.Dir))
	}
	if reason, _, _ := strings.Cut(f.NotKept, "\n"); reason != "" {
		what := "not kept"
		if f.Dir != "" {
			what = "incomplete"
		}
		fmt.Fprintf(w, "  %s: %s\n", what, format.Line(reason))
	}
	fmt.Fprintf(w, "  %s\n", f.Command)
}

// WriteStates writes, for people, the states that the runs reached, and the failures of the exploration itself.
func (r Report) WriteStates(w io.Writer) {
	if len(r.States) > 0 {
		fmt.Fprintln(w, "\nstates reached, with the number of runs:")
	}
	for _, state := range slices.Sorted(maps.Keys(r.States)) {
		fmt.Fprintf(w, "  %7s  %s\n", format.Number(r.States[state]), state)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(w, "\nseed %d failed: %s\n", f.Seed, format.Line(f.Failure))
	}
	for _, f := range r.Refusals {
		fmt.Fprintf(w, "\nseed %d left out: %s\n", f.Seed, format.Line(f.Reason))
	}
	for _, d := range r.Differences {
		fmt.Fprintf(w, "\nseed %d: the history differs when the run is repeated; line %d first and then:\n  %s\n  %s\n",
			d.Seed, d.Line, format.Line(d.Before), format.Line(d.After))
	}
}

// speed is the number of runs, their duration and their rates.
func (r Report) speed() string {
	took := max(r.Took, time.Millisecond)
	return fmt.Sprintf("%s in %s: %.1f seeds/s, %.2f virtual hours (%s times real time), %s commands/s",
		format.Count(r.Runs, "run"), format.Duration(took), float64(r.Runs)/took.Seconds(), r.Virtual.Hours(),
		format.Number(int(float64(r.Virtual)/float64(took))), format.Number(int(float64(r.Commands)/took.Seconds())))
}

func share(n, of int) string {
	if of == 0 || n == 0 {
		return format.Number(n)
	}
	return fmt.Sprintf("%s (%.1f %%)", format.Number(n), 100*float64(n)/float64(of))
}
