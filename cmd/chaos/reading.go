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
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/console"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// readingFlags are the flags that determine how to interpret a history.
type readingFlags struct {
	format, dialect, unit string
	owner, key, token     string
	assume                []string
	clients               int
	explain               bool
}

func (f *readingFlags) add(c *cobra.Command) { f.addWith(c, "format") }

// addWith adds the flags; formatFlag is the name of the one for the format of the file.
func (f *readingFlags) addWith(c *cobra.Command, formatFlag string) {
	flags := c.Flags()
	flags.StringVar(&f.format, formatFlag, string(foreign.FormatAuto),
		"format of the file: "+strings.Join(historyFormats(), ", "))
	flags.StringVar(&f.dialect, "dialect", "strict",
		"conventions of the suite that wrote it: "+strings.Join(dialectNames(), ", "))
	flags.StringArrayVar(&f.assume, "assume", nil, "assumption about what the file leaves open: "+
		strings.Join(assumptionNames(), ", ")+"; may be repeated")
	flags.StringVar(&f.owner, "owner", "",
		"`PATH` of the owner, such as value.client, or process (default: value.owner, else the process)")
	flags.StringVar(&f.key, "key", "",
		"`PATH` of the lock's name, such as value.0 (default: key, value.key or value.lock)")
	flags.StringVar(&f.token, "token", "",
		"`PATH` of the fencing token (default: value.token, value.fence or value.revision)")
	flags.StringVar(&f.unit, "time-unit", "", "unit of the times: ns, us, ms or s (default ns)")
	flags.IntVar(&f.clients, "clients", 0,
		"number of clients of the run (default: from run.json, else each process is a client)")
	flags.BoolVar(&f.explain, "explain", false, "print to standard error how the file was read, and why")
	for flag, names := range map[string]func() []string{
		formatFlag: historyFormats, "dialect": dialectNames, "assume": assumptionNames, // order does not matter
	} {
		_ = c.RegisterFlagCompletionFunc(flag, completeNames(names))
	}
}

// reading is the dialect with the other flags applied.
func (f *readingFlags) reading() (foreign.Options, error) {
	d, err := foreign.LookupDialect(f.dialect)
	if err != nil {
		return foreign.Options{}, known("--dialect: unknown value", f.dialect, dialectNames())
	}
	r := d.Options
	if err := known("--format: unknown value", f.format, historyFormats()); err != nil {
		return r, err
	}
	if f.clients < 0 {
		return r, usage(fmt.Errorf("--clients %d: must not be negative", f.clients))
	}
	r.Format, r.Clients = foreign.Format(f.format), f.clients
	if r.Unit, err = foreign.ParseUnit(f.unit); err != nil {
		return r, usage(fmt.Errorf("--time-unit: %w", err))
	}
	for _, name := range f.assume {
		if err := known("--assume: unknown value", name, assumptionNames()); err != nil {
			return r, err
		}
		if a := foreign.Assumption(name); !slices.Contains(r.Assume, a) {
			r = r.With(a)
		}
	}
	for _, path := range []struct {
		to          *string
		flag, value string
	}{{&r.Owner, "owner", f.owner}, {&r.Key, "key", f.key}, {&r.Token, "token", f.token}} {
		if err := foreign.CheckPath(path.value); err != nil {
			return r, usage(fmt.Errorf("--%s %s: %w", path.flag, format.ShellWord(path.value), err))
		}
		if path.value != "" {
			*path.to = path.value
		}
	}
	return r, nil
}

// readHistory reads a history from its beginning, with that reading.
func readHistory(s streams, in *input, reading foreign.Options) (*history.History, foreign.Info, error) {
	if reading.Clients == 0 {
		reading.Clients = in.clients
	}
	reading.Progress, reading.Size = &in.events, in.size
	r := in.reader()
	line := console.ShowStatus(s.err, in.status)
	defer line.End()
	h, source, err := foreign.Read(r, in.name, reading)
	return h, source, badPath(err)
}

// historyFile is the file to read for path: the file itself, or the history in a
// run directory of chaos or of Jepsen.
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
	for _, name := range []string{"history.edn", "history.txt"} { // Jepsen's
		if _, err := os.Stat(filepath.Join(path, name)); err == nil {
			return filepath.Join(path, name), 0, nil
		}
	}
	return "", 0, usage(err)
}

// badPath makes err a usage error if the path does not exist or is not a history. Other errors, such as a failing
// disk's, stay as they are.
func badPath(err error) error {
	var line *history.LineError
	if missing := (*fs.PathError)(nil); errors.As(err, &missing) && errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("%s: no such file or run directory (the latest run is %s)",
			missing.Path, filepath.Join(rundir.Root, rundir.Latest)))
	}
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &line) || errors.Is(err, foreign.ErrNotHistory) {
		return usage(err)
	}
	return err
}

// explain prints how a history was read.
func explain(s streams, reading foreign.Options, source foreign.Info) {
	s.note("read as %s: %s", source.Format, source.Reason)
	if !source.Foreign {
		s.note("written by chaos: nothing is assumed")
		return
	}
	for _, a := range foreign.Assumptions() {
		text := "not assumed (strictly: " + a.Strict + ")"
		if slices.Contains(reading.Assume, a.Name) {
			text = "assumed: " + a.Doc
		}
		s.note("  %s: %s; %s affected", a.Name, text, format.Count(source.Affected[a.Name], "event"))
	}
}

func historyFormats() []string {
	return format.Texts(foreign.Formats(), func(f foreign.Format) foreign.Format { return f })
}

func dialectNames() []string {
	return format.Texts(foreign.Dialects(), func(d foreign.Dialect) string { return d.Name })
}

func assumptionNames() []string {
	return format.Texts(foreign.Assumptions(), func(a foreign.AssumptionRow) foreign.Assumption { return a.Name })
}

// readingHelp is the part of a help text that lists assumptions and dialects.
func readingHelp() string {
	var b strings.Builder
	b.WriteString("Histories of other test suites can be ambiguous. By default nothing is assumed; --assume accepts:\n")
	for _, a := range foreign.Assumptions() {
		fmt.Fprintf(&b, "  %-15s %s\n  %-15s (strictly: %s; for %s)\n", a.Name, a.Doc, "", a.Strict, a.Source)
	}
	b.WriteString("A dialect is a set of these:\n")
	for _, d := range foreign.Dialects() {
		fmt.Fprintf(&b, "  %-15s %s\n", d.Name, d.Doc)
	}
	return b.String()
}
