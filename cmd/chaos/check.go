package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/nearest"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

type checkOptions struct {
	readingFlags
	properties []string
	json       bool
}

func newCheck(s streams) *cobra.Command {
	var o checkOptions
	c := &cobra.Command{
		Use:   "check FILE|DIR",
		Short: "judge any recorded history",
		Long: `Judges a history, alone or in a run directory, also of a run that was killed: an operation
without completion is of unknown outcome, and a torn last line is reported and ignored.
Read are our own history.jsonl, Jepsen's history.edn and history.txt, JSON arrays of events, and
the notation of checker/testdata; what a file is, is told by its content. Nothing is written.

` + readingHelp() + `If another reading gives another verdict, both are shown; the exit code is that of the
one asked for.

` + exitHelp,
		Example: `  chaos check chaos-runs/latest
  chaos check history.jsonl --property exclusion --property fencing
  chaos check store/latest/history.edn --dialect etcd
  chaos check lock.json --owner value.client --time-unit ms --assume empty-refuses
  chaos check chaos-runs/failover/latest --json`,
		Args: exactly(1, "a history file or a run directory"),
		RunE: func(_ *cobra.Command, args []string) error { return check(s, args[0], o) },
	}
	c.Flags().StringArrayVar(&o.properties, "property", nil, "judge only this property; may be repeated")
	o.readingFlags.add(c)
	c.Flags().BoolVar(&o.json, "json", false, "print the judgement as one JSON object")
	_ = c.RegisterFlagCompletionFunc("property", completeNames(propertyNames))
	return c
}

func check(s streams, path string, o checkOptions) error {
	options := checker.Options{SearchCommand: searchCommand()}
	for _, name := range o.properties {
		if !slices.Contains(propertyNames(), name) {
			return usage(fmt.Errorf("no property is called %q%s", name, nearest.Hint(name, propertyNames())))
		}
		options.Only = append(options.Only, checker.Property(name))
	}
	how, err := o.reading()
	if err != nil {
		return err
	}
	h, source, err := readHistory(s, path, how)
	if err != nil {
		return err
	}
	if o.explain {
		explain(s, how, source)
	}
	j := judged{Judgement: weigh(path, checker.Judge(h, options)), Format: source.Format, Assumed: how.Assume}
	h = nil // the other readings need the memory
	others := others{streams: s, path: path, options: options, verdict: j.Verdict}
	if j.Others, err = others.find(how, source); err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(s.out)
		e.SetIndent("", "  ")
		if err := e.Encode(j); err != nil {
			return err
		}
		return verdictCode(j.Verdict)
	}
	printJudgement(streams{out: harmlessWriter{s.out}}, j)
	return verdictCode(j.Verdict)
}

// weigh takes into account how a run ended, if path is the directory of one.
func weigh(path string, j checker.Judgement) checker.Judgement {
	dir, err := rundir.Open(path)
	if err != nil {
		return j
	}
	m, err := dir.ReadManifest()
	if err != nil {
		return j
	}
	return m.Weigh(j)
}

// judged is a judgement with the reading that it rests upon.
type judged struct {
	checker.Judgement
	Format  history.Format       `json:"format"`
	Assumed []history.Assumption `json:"assumed,omitempty"`
	Others  []otherReading       `json:"other_readings,omitempty"`
}

// otherReading is a reading that leads to another verdict.
type otherReading struct {
	Assumed  []history.Assumption `json:"assumed"`
	Verdict  checker.Verdict      `json:"verdict"`
	Sentence string               `json:"sentence"`
}

// others looks for what else a history may mean.
type others struct {
	streams
	path    string
	options checker.Options
	verdict checker.Verdict // of the reading that was asked for
	found   []otherReading
}

// find reads strictly, if anything was assumed; else with each assumption that
// would change an event, and with all of them, of which one may need the other.
func (o *others) find(how history.Reading, source history.Source) ([]otherReading, error) {
	if !source.Foreign {
		return nil, nil
	}
	if len(how.Assume) > 0 {
		_, err := o.judge(how.Strict())
		return o.found, err
	}
	matter, single := source.Matter, 0
	for _, a := range history.Assumptions() {
		if source.Matter[a.Name] == 0 {
			continue
		}
		single++
		with, err := o.judge(how.With(a.Name))
		if err != nil {
			return nil, err
		}
		matter = maps.Clone(matter)
		maps.Copy(matter, with.Matter)
	}
	all := how
	for _, a := range history.Assumptions() {
		if source.Matter[a.Name] > 0 || matter[a.Name] > 0 {
			all = all.With(a.Name)
		}
	}
	if single == 0 || len(all.Assume) == 1 {
		return o.found, nil
	}
	_, err := o.judge(all)
	return o.found, err
}

// judge keeps a reading that leads to a verdict that none before it led to.
func (o *others) judge(how history.Reading) (history.Source, error) {
	h, source, err := readHistory(o.streams, o.path, how)
	if err != nil {
		return source, err
	}
	j := checker.Judge(h, o.options)
	same := func(r otherReading) bool { return r.Verdict == j.Verdict }
	if j.Verdict != o.verdict && !slices.ContainsFunc(o.found, same) {
		o.found = append(o.found, otherReading{how.Assume, j.Verdict, j.Sentence})
	}
	return source, nil
}

// kind says in a sentence what sort of violation it is: a lock that let two in
// and a lock whose answers do not add up need different remedies.
func kind(j *checker.Judgement) string {
	exclusion, order := j.Result(checker.Exclusion), j.Result(checker.Linearizable)
	switch {
	case exclusion != nil && exclusion.Outcome == checker.Violated:
		return "There were two holders at once."
	case exclusion == nil || order == nil || order.Outcome != checker.Violated:
		return ""
	case exclusion.Outcome == checker.Holds:
		return "There were never two holders at once, but the history is not linearizable: " +
			"no legal order explains the answers."
	}
	return ""
}

func printJudgement(s streams, j judged) {
	fmt.Fprintf(s.out, "%s: %s\n", strings.ToUpper(string(j.Verdict)), j.Sentence)
	if text := kind(&j.Judgement); text != "" {
		fmt.Fprintln(s.out, text)
	}
	for _, other := range j.Others {
		how := "strictly"
		if len(other.Assumed) > 0 {
			how = fmt.Sprintf("assuming %s", wordList(other.Assumed))
		}
		fmt.Fprintf(s.out, "Read %s it is %s: %s\n", how, strings.ToUpper(string(other.Verdict)), other.Sentence)
	}
	fmt.Fprintln(s.out)
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, r := range j.Results {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", r.Property, r.Outcome, r.Summary)
	}
	_ = w.Flush()
	for _, r := range j.Results {
		for i, v := range r.Violations {
			if i == 3 {
				fmt.Fprintf(s.out, "  … and %d more (--json has them)\n", r.Total-i)
				break
			}
			fmt.Fprintf(s.out, "\n  %s, events %v: %s\n", r.Property, v.Events, v.Text)
		}
	}
	for _, p := range j.Problems {
		fmt.Fprintf(s.out, "\n  note: %s\n", problemText(p))
	}
	fmt.Fprintf(s.out, "\n%d events, %d operations, judged in %v\n", j.Events, j.Spans, j.Took.Round(10e3))
}

func wordList(assumed []history.Assumption) string {
	var names []string
	for _, a := range assumed {
		names = append(names, string(a))
	}
	return strings.Join(names, " and ")
}

func propertyNames() []string {
	var names []string
	for _, row := range checker.Catalog() {
		names = append(names, string(row.Name))
	}
	return names
}
