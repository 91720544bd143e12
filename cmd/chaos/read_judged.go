package main

import (
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// historyFlags are the flags about reading and judging a history.
type historyFlags struct {
	readingFlags
	judgingFlags
}

// of are the options of reading and judging; a run's are the defaults.
func (f *historyFlags) of(m rundir.Manifest) (reading foreign.Options, o checker.Options, err error) {
	if reading, err = f.reading(); err == nil {
		o, err = f.options(m.Judging())
	}
	return reading, o, err
}

// judgedHistory is a history that was read and judged.
type judgedHistory struct {
	judged
	in      *input // open
	reading foreign.Options
	history *history.History
}

// readJudged reads and judges a history: a file, the history of a run directory, or standard input. It prints the
// explanation for --explain, and finds other readings that lead to another verdict. The caller closes in.
func readJudged(s streams, path string, flags *historyFlags) (_ *judgedHistory, err error) {
	manifest := manifestOf(path)
	reading, options, err := flags.of(manifest)
	if err != nil {
		return nil, err
	}
	in, err := openInput(s, path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = in.Close()
		}
	}()
	h, source, err := readHistory(s, in, reading)
	if err != nil {
		return nil, err
	}
	keys := source.Keys
	if keys.Certain {
		reading.Key = keys.Path
		if h, source, err = readHistory(s, in, reading); err != nil {
			return nil, err
		}
	}
	if dir, err := rundir.Open(path); err == nil {
		h.Samples = rundir.SamplesUntil(dir.Samples(), h.End)
	}
	options.ForeignSuite = source.Foreign
	if err := flags.checkPermits(h); err != nil {
		return nil, err
	}
	if flags.explain {
		explain(s, reading, source)
	}
	j := judged{Judgement: manifest.Downgrade(judge(s, h, options)), Format: source.Format, Assumed: reading.Assume}
	if keys.Certain {
		j.Key = keys.Path
	}
	others := others{streams: s, in: in, options: options, verdict: j.Verdict}
	if err := others.findKeys(reading, keys); err != nil {
		return nil, err
	}
	if j.Others, err = others.find(reading, source); err != nil {
		return nil, err
	}
	return &judgedHistory{judged: j, in: in, reading: reading, history: h}, nil
}
