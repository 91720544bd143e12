package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

type checkOptions struct {
	readingFlags
	judgingFlags
	json, stream, follow bool
}

func newCheck(s streams) *cobra.Command {
	var o checkOptions
	c := &cobra.Command{
		Use:   "check FILE|DIR|-",
		Short: "judge any recorded history",
		Long: `Judges a history, alone or in a run directory, also of a run that was killed: an operation
without completion is of unknown outcome, and a torn last line is reported and ignored.
Read are our own history.jsonl, Jepsen's history.edn and history.txt, JSON arrays of events, and
the notation of checker/testdata; what a file is, is told by its content. - is standard input.

` + readingHelp() + `If another reading gives another verdict, both are shown; the exit code is that of the
one asked for.

` + exitHelp,
		Example: `  chaos check chaos-runs/latest
  chaos check history.jsonl --property exclusion --property fencing
  chaos check store/latest/history.edn --dialect etcd
  chaos check lock.json --owner value.client --time-unit ms --assume empty-refuses
  chaos check chaos-runs/failover/latest --json
  zcat history.jsonl.gz | chaos check -
  chaos check --stream chaos-runs/latest
  ssh host tail -n +1 -f history.jsonl | chaos check --stream -
  chaos check queue.jsonl --fair --max-bypass 2 --slack 3s
  chaos check latest --lock-kind mutex
  chaos check pool.jsonl --permits db=10 --permits 4 --clock-error 2ms`,
		Args: exactly(1, "a history file, a run directory, or - for standard input"),
		RunE: func(_ *cobra.Command, args []string) error { return check(s, args[0], o) },
	}
	o.judgingFlags.add(c)
	o.readingFlags.add(c)
	c.Flags().BoolVar(&o.stream, "stream", false,
		"judge as it comes, in bounded memory: "+strings.Join(propertyList(checker.Streamed()), ", "))
	c.Flags().BoolVar(&o.follow, "follow", false, "with --stream: wait for more at the end of the file, until Ctrl-C")
	c.Flags().BoolVar(&o.json, "json", false, "print the judgement as one JSON object")
	return c
}

func check(s streams, path string, o checkOptions) error {
	how, err := o.reading()
	if err != nil {
		return err
	}
	options, err := o.options(mayBeDown(path))
	if err != nil {
		return err
	}
	switch {
	case o.stream:
		return checkStream(s, path, o, how, options)
	case o.follow:
		return usage(errors.New("--follow waits for more, which only --stream can judge"))
	}
	in, err := openInput(s, path)
	if err != nil {
		return err
	}
	defer in.Close()
	h, source, err := readHistory(s, in, how)
	if err != nil {
		return err
	}
	if err := o.known(h); err != nil {
		return err
	}
	if o.explain {
		explain(s, how, source)
	}
	j := judged{Judgement: downgrade(path, judge(s, h, options)), Format: source.Format, Assumed: how.Assume}
	h = nil // the other readings need the memory
	others := others{streams: s, in: in, options: options, verdict: j.Verdict}
	if j.Others, err = others.find(how, source); err != nil {
		return err
	}
	if o.json {
		if err := s.json(j); err != nil {
			return err
		}
		return verdictCode(j.Verdict)
	}
	printJudgement(streams{out: harmlessWriter{s.out}}, j)
	return verdictCode(j.Verdict)
}

// judge judges, and tells how far it is if that takes long.
func judge(s streams, h *history.History, options checker.Options) checker.Judgement {
	p := new(checker.Progress)
	options.Progress = p
	w := work(s, func() stage {
		done, total := p.Done()
		return stage{text: "judging " + p.Doing(), done: done, total: total}
	})
	defer w.end()
	return checker.Judge(h, options)
}

// downgrade takes into account how a run ended, if path is the directory of one.
func downgrade(path string, j checker.Judgement) checker.Judgement {
	dir, err := rundir.Open(path)
	if err != nil {
		return j
	}
	m, err := dir.ReadManifest()
	if err != nil {
		return j
	}
	return m.Downgrade(j)
}

// mayBeDown is how many servers a run can bear to lose, if path is the directory of one.
func mayBeDown(path string) int {
	dir, err := rundir.Open(path)
	if err != nil {
		return 0
	}
	m, err := dir.ReadManifest()
	if err != nil {
		return 0
	}
	return m.MayBeDown()
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
	in      *input
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
	h, source, err := readHistory(o.streams, o.in, how)
	if err != nil {
		return source, err
	}
	j := judge(o.streams, h, o.options)
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
