package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/nearest"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// readingFlags are the flags that say how a history is to be understood.
type readingFlags struct {
	format, dialect, unit string
	owner, key, token     string
	assume                []string
	clients               int
	explain               bool
}

func (f *readingFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.format, "format", string(history.FormatAuto),
		"form of the file: "+strings.Join(historyFormats(), ", "))
	flags.StringVar(&f.dialect, "dialect", "strict", "suite that wrote it: "+strings.Join(dialectNames(), ", "))
	flags.StringArrayVar(&f.assume, "assume", nil, "assume what the file does not say: "+
		strings.Join(assumptionNames(), ", ")+"; may be repeated")
	flags.StringVar(&f.owner, "owner", "",
		"where the owner is, such as value.client, or process (default value.owner, else the process)")
	flags.StringVar(&f.key, "key", "",
		"where the name of the lock is, such as value.0 (default key, value.key or value.lock)")
	flags.StringVar(&f.token, "token", "",
		"where the fencing number is (default value.token, value.fence or value.revision)")
	flags.StringVar(&f.unit, "time-unit", "", "unit of the times: ns, us, ms or s (default ns)")
	flags.IntVar(&f.clients, "clients", 0,
		"number of clients of the run (default: from run.json, else the processes are the clients)")
	flags.BoolVar(&f.explain, "explain", false, "say on standard error how the file was read, and why")
	for flag, names := range map[string]func() []string{
		"format": historyFormats, "dialect": dialectNames, "assume": assumptionNames, // order does not matter
	} {
		_ = c.RegisterFlagCompletionFunc(flag, completeNames(names))
	}
}

// reading is the dialect with whatever was asked for besides.
func (f *readingFlags) reading() (history.Reading, error) {
	d, err := history.FindDialect(f.dialect)
	if err != nil {
		return history.Reading{}, usage(fmt.Errorf("%w%s", err, nearest.Hint(f.dialect, dialectNames())))
	}
	r := d.Reading
	if !slices.Contains(historyFormats(), f.format) {
		return r, usage(fmt.Errorf("no format is called %q%s", f.format, nearest.Hint(f.format, historyFormats())))
	}
	if f.clients < 0 {
		return r, usage(fmt.Errorf("--clients %d: it takes a whole number from 0", f.clients))
	}
	r.Format, r.Clients = history.Format(f.format), f.clients
	if r.Unit, err = history.ParseUnit(f.unit); err != nil {
		return r, usage(fmt.Errorf("--time-unit: %w", err))
	}
	for _, name := range f.assume {
		if !slices.Contains(assumptionNames(), name) {
			return r, usage(fmt.Errorf("no assumption is called %q%s", name, nearest.Hint(name, assumptionNames())))
		}
		if a := history.Assumption(name); !slices.Contains(r.Assume, a) {
			r = r.With(a)
		}
	}
	for _, path := range []struct {
		to         *string
		name, from string
	}{{&r.Owner, "owner", f.owner}, {&r.Key, "key", f.key}, {&r.Token, "token", f.token}} {
		if err := history.CheckPath(path.from); err != nil {
			return r, usage(fmt.Errorf("--%s %s: %w", path.name, shellQuote(path.from), err))
		}
		if path.from != "" {
			*path.to = path.from
		}
	}
	return r, nil
}

// readHistory reads a history; how it is to be understood may be another the next time.
func readHistory(s streams, in *input, how history.Reading) (*history.History, history.Source, error) {
	if how.Clients == 0 {
		how.Clients = in.clients
	}
	how.Seen = &in.events
	r := in.reader()
	w := work(s, in.progress)
	defer w.end()
	h, source, err := history.ReadAny(r, in.name, how)
	return h, source, badPath(err)
}

// historyFile is the file to read if path is named: itself, or the history in
// the directory of a run of ours, or of Jepsen's.
func historyFile(path string) (file string, clients int, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", 0, badPath(err)
	}
	if !info.IsDir() {
		return path, 0, nil
	}
	dir, err := rundir.Open(path)
	if err == nil {
		if m, err := dir.ReadManifest(); err == nil {
			clients = m.Clients
		}
		return dir.File(rundir.HistoryFile), clients, nil
	}
	for _, name := range []string{"history.edn", "history.txt"} { // a run of Jepsen
		if _, err := os.Stat(filepath.Join(path, name)); err == nil {
			return filepath.Join(path, name), 0, nil
		}
	}
	return "", 0, usage(err)
}

// badPath is a usage error if the user named something that is not there or
// is not a history; a disk that fails is not the user's fault.
func badPath(err error) error {
	var line *history.LineError
	if absent := (*fs.PathError)(nil); errors.As(err, &absent) && errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("there is no %s: name a history file or the directory of a run; the newest is %s",
			absent.Path, filepath.Join(rundir.Root, rundir.Latest)))
	}
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &line) || errors.Is(err, history.ErrNotHistory) {
		return usage(err)
	}
	return err
}

// explain says how a history was read.
func explain(s streams, how history.Reading, source history.Source) {
	s.note("read as %s: %s", source.Format, source.Why)
	if !source.Foreign {
		s.note("in our own words: nothing is assumed")
		return
	}
	for _, a := range history.Assumptions() {
		text := "not assumed, strictly: " + a.Strict
		if slices.Contains(how.Assume, a.Name) {
			text = "assumed: " + a.Doc
		}
		s.note("  %s: %s (%d events)", a.Name, text, source.Matter[a.Name])
	}
}

func historyFormats() (names []string) {
	for _, f := range history.Formats() {
		names = append(names, string(f))
	}
	return names
}

func dialectNames() (names []string) {
	for _, d := range history.Dialects() {
		names = append(names, d.Name)
	}
	return names
}

func assumptionNames() (names []string) {
	for _, a := range history.Assumptions() {
		names = append(names, string(a.Name))
	}
	return names
}

// readingHelp is the part of a help text that lists what can be assumed.
func readingHelp() string {
	var b strings.Builder
	b.WriteString("A history of another suite does not say everything. Nothing is assumed unless asked for:\n")
	for _, a := range history.Assumptions() {
		fmt.Fprintf(&b, "  %-15s %s\n  %-15s (strictly: %s; for %s)\n", a.Name, a.Doc, "", a.Strict, a.Source)
	}
	b.WriteString("A dialect is a set of these:\n")
	for _, d := range history.Dialects() {
		fmt.Fprintf(&b, "  %-15s %s\n", d.Name, d.Doc)
	}
	return b.String()
}
