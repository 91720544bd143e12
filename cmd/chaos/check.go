package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/console"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// historyArg is the argument of check and convert.
const historyArg = "a history file, a run directory, or - for standard input"

type checkOptions struct {
	historyFlags
	json, stream, follow bool
	rewrite              bool  // verdict.json of a run directory
	large                int64 // see judgeLarge
}

func newCheck(s streams) *cobra.Command {
	var o checkOptions
	c := &cobra.Command{
		Use:   "check FILE|DIR|-",
		Short: "Judge a recorded history",
		Long: `Judges a history: a file, the history of a run directory, or standard input (-). A run that was
killed can be judged too: an operation without a completion has an unknown outcome, and a torn
last line is reported and skipped. The verdict of a run directory is written to its verdict.json,
unless a flag changes how the history is read or judged.
It reads chaos' own history.jsonl, Jepsen's history.edn and history.txt, JSON arrays of events,
and the text format of checker/testdata. The format is detected from the content.

` + readingHelp() + `
If another interpretation leads to another verdict, both are printed; the exit code is that of the
requested one.

Exit codes: 0 safe, 1 unsafe, 2 inconclusive, 3 safe but a threshold of the scenario is not met, 64 wrong
command line or unreadable history, 69 environment (disk full, no permission), 70 internal error.`,
		Example: `  chaos check chaos-runs/latest
  chaos check history.jsonl --property exclusion --property fencing
  chaos check store/latest/history.edn --dialect etcd
  chaos check lock.json --owner value.client --time-unit ms --assume empty-is-fail
  chaos check chaos-runs/failover/latest --json
  zcat history.jsonl.gz | chaos check -
  chaos check --stream chaos-runs/latest
  ssh host tail -n +1 -f history.jsonl | chaos check --stream -
  chaos check queue.jsonl --fair --max-bypass 2 --slack 3s
  chaos check latest --lock-kind mutex
  chaos check pool.jsonl --permits db=10 --permits 4 --clock-error 2ms`,
		Args: oneArg(historyArg),
		RunE: func(c *cobra.Command, args []string) error {
			o.rewrite = !changesJudgement(c)
			if o.large = largeHistory; c.Flags().Changed("stream") {
				o.large = math.MaxInt64
			}
			return check(s, args[0], o)
		},
	}
	o.judgingFlags.add(c)
	o.readingFlags.add(c)
	c.Flags().BoolVar(&o.stream, "stream", false,
		"judge while reading, in bounded memory; properties: "+strings.Join(streamedNames(), ", ")+
			" (also without the flag for a large file, if --property names only these and the verdict is the same)")
	c.Flags().BoolVar(&o.follow, "follow", false, "with --stream: at the end of the file, wait for more until Ctrl-C")
	c.Flags().BoolVar(&o.json, "json", false, "print the judgement as a JSON object")
	return c
}

func check(s streams, path string, o checkOptions) error {
	switch {
	case o.stream:
		return checkStream(s, path, o)
	case o.follow:
		return usage(errors.New("--follow needs --stream"))
	}
	if j, done := judgeLarge(s, path, o); done {
		return printJudged(s, j, o.json)
	}
	r, err := readJudged(s, path, &o.historyFlags)
	if err != nil {
		return err
	}
	defer r.in.Close()
	if o.rewrite {
		rewriteVerdict(s, path, r.Judgement)
	}
	return printJudged(s, r.judged, o.json)
}

// changesJudgement reports whether a flag of chaos check makes the judgement differ from the run's.
func changesJudgement(c *cobra.Command) (changes bool) {
	c.Flags().Visit(func(f *pflag.Flag) { changes = changes || f.Name != "json" && f.Name != "explain" })
	return changes
}

// rewriteVerdict writes the verdict of a run directory; any other path has none.
func rewriteVerdict(s streams, path string, j checker.Judgement) {
	dir, err := rundir.Open(path)
	if err != nil {
		return
	}
	if err := dir.WriteVerdict(j); err != nil {
		s.note("%s was not rewritten: %v", rundir.VerdictFile, err)
	}
}

// printJudged prints a judgement and returns the exit code of its verdict.
func printJudged(s streams, j judged, asJSON bool) error {
	if asJSON {
		if err := s.json(j); err != nil {
			return err
		}
		return judgementError(j.Judgement)
	}
	printJudgement(streams{out: printableWriter{s.out}}, j)
	return judgementError(j.Judgement)
}

// judge judges a history, with a status line if that takes long.
func judge(s streams, h *history.History, options checker.Options) checker.Judgement {
	p := new(checker.Progress)
	options.Progress = p
	line := console.ShowStatus(s.err, func() console.Status {
		done, total := p.Done()
		return console.Status{Text: "judging " + p.Doing(), Done: done, Total: total}
	})
	defer line.End()
	return checker.Judge(h, options)
}

// manifestOf is run.json if path is a run directory, else the zero manifest.
func manifestOf(path string) rundir.Manifest {
	dir, err := rundir.Open(path)
	if err != nil {
		return rundir.Manifest{}
	}
	m, _ := dir.ReadManifest()
	return m
}

// judged is a judgement and the reading that it is based on.
type judged struct {
	checker.Judgement
	Format  foreign.Format       `json:"format"`
	Assumed []foreign.Assumption `json:"assumed,omitempty"`
	Stream  bool                 `json:"stream,omitempty"` // it was judged as a stream
	Key     string               `json:"key,omitempty"`    // path at which keys were found in the values
	Others  []otherReading       `json:"other_readings,omitempty"`
}

// keyNote says where the keys were found; "": where the flags or the defaults say.
func (j *judged) keyNote() string {
	if j.Key == "" {
		return ""
	}
	return fmt.Sprintf("The values name the locks: read with --key %s.", j.Key)
}

// otherReading is a reading that leads to another verdict.
type otherReading struct {
	Assumed  []foreign.Assumption `json:"assumed"`
	Key      string               `json:"key,omitempty"` // path to the key, if the judgement used another one
	Verdict  checker.Verdict      `json:"verdict"`
	Sentence string               `json:"sentence"`
}

// text describes the reading and its verdict.
func (r otherReading) text() string {
	reading := "without assumptions"
	if len(r.Assumed) > 0 {
		names := format.Texts(r.Assumed, func(a foreign.Assumption) foreign.Assumption { return a })
		reading = "with --assume " + strings.Join(names, " --assume ")
	}
	switch r.Key {
	case "":
	case foreign.OneLock:
		reading = "if read as one lock (--key " + r.Key + ")"
	default:
		reading = "with --key " + r.Key + ", one lock per value"
	}
	return fmt.Sprintf("%s %s: %s", strings.ToUpper(string(r.Verdict)), reading, r.Sentence)
}

// others searches for readings of a history that lead to another verdict.
type others struct {
	streams
	in      *input
	options checker.Options
	verdict checker.Verdict // of the requested interpretation
	key     string          // of the reading, if it differs from the requested one's
	found   []otherReading
}

// findKeys tries the other reading of values that may name locks.
func (o *others) findKeys(reading foreign.Options, keys foreign.ValueKeys) error {
	if keys.Path == "" {
		return nil
	}
	if reading.Key = keys.Path; keys.Certain {
		reading.Key = foreign.OneLock
	}
	o.key = reading.Key
	_, err := o.judge(reading)
	o.key = ""
	return err
}

// find tries the strict reading if the requested one assumes something;
// otherwise each assumption that would change an event, and then all of them
// together, because one may matter only with another.
func (o *others) find(reading foreign.Options, source foreign.Info) ([]otherReading, error) {
	if !source.Foreign {
		return nil, nil
	}
	if len(reading.Assume) > 0 {
		_, err := o.judge(reading.Strict())
		return o.found, err
	}
	matter, single := source.Affected, 0
	for _, a := range foreign.Assumptions() {
		if source.Affected[a.Name] == 0 {
			continue
		}
		single++
		with, err := o.judge(reading.With(a.Name))
		if err != nil {
			return nil, err
		}
		matter = maps.Clone(matter)
		maps.Copy(matter, with.Affected)
	}
	all := reading
	for _, a := range foreign.Assumptions() {
		if source.Affected[a.Name] > 0 || matter[a.Name] > 0 {
			all = all.With(a.Name)
		}
	}
	if single == 0 || len(all.Assume) == 1 {
		return o.found, nil
	}
	_, err := o.judge(all)
	return o.found, err
}

// judge judges another reading, and keeps it if no reading before it had the same verdict.
func (o *others) judge(reading foreign.Options) (foreign.Info, error) {
	h, source, err := readHistory(o.streams, o.in, reading)
	if err != nil {
		return source, err
	}
	j := judge(o.streams, h, o.options)
	same := func(r otherReading) bool { return r.Verdict == j.Verdict }
	if j.Verdict != o.verdict && !slices.ContainsFunc(o.found, same) {
		o.found = append(o.found, otherReading{reading.Assume, o.key, j.Verdict, j.Sentence})
	}
	return source, nil
}

// exclusionNote reports whether two clients held the lock at once. A lock that
// lets two in and a lock with wrong replies need different fixes.
func exclusionNote(j *checker.Judgement) string {
	exclusion, linear := j.Result(checker.Exclusion), j.Result(checker.Linearizable)
	switch {
	case exclusion != nil && exclusion.Outcome == checker.Violated:
		return "There were two holders at once."
	case exclusion == nil || linear == nil || linear.Outcome != checker.Violated:
		return ""
	case exclusion.Outcome == checker.Holds:
		return "There were never two holders at once, but the history is not linearizable: " +
			"no legal order of the operations explains the replies."
	}
	return ""
}

func printJudgement(s streams, j judged) {
	fmt.Fprintf(s.out, "%s: %s\n", strings.ToUpper(string(j.Verdict)), format.Line(j.Sentence))
	if text := exclusionNote(&j.Judgement); text != "" {
		fmt.Fprintln(s.out, text)
	}
	if text := j.keyNote(); text != "" {
		fmt.Fprintln(s.out, text)
	}
	for _, other := range j.Others {
		fmt.Fprintln(s.out, other.text())
	}
	fmt.Fprintln(s.out)
	w := s.table()
	for _, r := range j.Results {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", r.Property, r.Outcome, summaryOf(r))
	}
	for _, c := range j.Thresholds {
		outcome := "met"
		if !c.Met {
			outcome = "not met"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s, limit %s\n", c.Name, outcome, c.Actual, c.Expected)
	}
	_ = w.Flush()
	printViolations(s, j.Results)
	for _, p := range j.Problems {
		fmt.Fprintf(s.out, "\n  note: %s\n", problemText(p))
	}
	fmt.Fprintf(s.out, "\n%s, %s, judged in %s\n", format.Count(j.Events, "event"), format.Count(j.Spans, "operation"),
		format.Duration(j.Took))
}

// summaryOf is the summary of a result in a table. The violations are listed below the table, so for a violated
// property it is their number and the rest of the summary after the first of them.
func summaryOf(r checker.Result) string {
	if r.Outcome != checker.Violated || len(r.Violations) == 0 {
		return r.Summary
	}
	rest := strings.TrimPrefix(r.Summary, r.Violations[0].Text)
	rest = strings.TrimPrefix(rest, ", and "+format.Count(r.Total-1, "more violation"))
	if rest == r.Summary { // it does not begin with the violation
		return r.Summary
	}
	return format.Count(r.Total, "violation") + rest
}

// printViolations prints up to three violations of each property. One that has the events of an earlier property's and
// is about the same overlap is printed once, with the names of both properties.
func printViolations(s streams, results []checker.Result) {
	type paragraph struct {
		names []string
		first checker.Violation
	}
	var all []*paragraph
	for _, r := range results {
	violations:
		for i, v := range r.Violations {
			if i == 3 {
				more := format.Number(r.Total-i) + " more (--json lists them)"
				all = append(all, &paragraph{[]string{string(r.Property)}, checker.Violation{Text: more}})
				break
			}
			for _, p := range all {
				if sameOverlap(p.first, v) {
					p.names = append(p.names, string(r.Property))
					continue violations
				}
			}
			all = append(all, &paragraph{[]string{string(r.Property)}, v})
		}
	}
	for _, p := range all {
		names := strings.Join(p.names, ", ")
		if len(p.first.Events) > 0 {
			names += fmt.Sprintf(", events %v", p.first.Events)
		}
		fmt.Fprintf(s.out, "\n  %s: %s\n", names, p.first.Text)
	}
}

// sameOverlap reports whether two violations have the same events and have the same sentence, up to the interval in
// parentheses: the rest is the conclusion of each property.
func sameOverlap(a, b checker.Violation) bool {
	before, _, overlap := strings.Cut(a.Text, ")")
	return overlap && len(a.Events) > 0 && slices.Equal(a.Events, b.Events) && strings.HasPrefix(b.Text, before+")")
}

func problemText(p history.Problem) string {
	if p.Line > 0 {
		return fmt.Sprintf("line %d: %s", p.Line, format.Line(p.Text))
	}
	return format.Line(p.Text)
}

func propertyNames() []string {
	return format.Texts(checker.Catalog(), func(row checker.Spec) checker.Property { return row.Name })
}
