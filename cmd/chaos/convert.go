package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/console"
)

type convertOptions struct {
	readingFlags
	to, out string
}

func newConvert(s streams) *cobra.Command {
	var o convertOptions
	c := &cobra.Command{
		Use:   "convert FILE|DIR --to edn|jsonl",
		Short: "Convert a history to another format",
		Long: `Reads a history in any format that chaos check reads and writes it as EDN (Jepsen's history.edn, for
Knossos and Jepsen's tools) or as JSON lines (chaos' own history.jsonl). It writes the events as the
reading below interprets them.

` + readingHelp(),
		Example: `  chaos convert chaos-runs/latest --to edn --out history.edn
  chaos convert history.edn --to jsonl --dialect etcd > history.jsonl`,
		Args: oneArg(historyArg),
		RunE: func(_ *cobra.Command, args []string) error { return convert(s, args[0], o) },
	}
	o.readingFlags.add(c)
	c.Flags().StringVar(&o.to, "to", "", "`FORMAT` to write: edn or jsonl")
	c.Flags().StringVar(&o.out, "out", "", "`FILE` to write (default: standard output)")
	_ = c.RegisterFlagCompletionFunc("to", completeNames(convertNames))
	return c
}

func convertNames() []string { return []string{string(foreign.FormatEDN), string(foreign.FormatJSONL)} }

func convert(s streams, path string, o convertOptions) error {
	var appendEvent func(*history.Event, []byte) []byte
	switch foreign.Format(o.to) {
	case foreign.FormatEDN:
		appendEvent = foreign.AppendEDN
	case foreign.FormatJSONL:
		appendEvent = (*history.Event).AppendJSON
	case "":
		return usage(errors.New("convert needs --to edn or --to jsonl"))
	default:
		return known("--to: cannot write format", o.to, convertNames())
	}
	reading, err := o.reading()
	if err != nil {
		return err
	}
	in, err := openInput(s, path)
	if err != nil {
		return err
	}
	defer in.Close()
	reading.Progress = &in.events
	return writeTo(s, o.out, func(w io.Writer) error {
		progress := console.ShowStatus(s.err, in.status)
		defer progress.End()
		var line []byte
		source, err := foreign.ReadEvents(in.reader(), in.name, reading, func(e *history.Event, _ int) error {
			line = append(appendEvent(e, line[:0]), '\n')
			_, err := w.Write(line)
			return err
		})
		if o.explain {
			explain(s, reading, source)
		}
		for _, p := range source.Problems {
			s.note("note: %s", problemText(p))
		}
		return badPath(err)
	})
}

// writeTo calls write for standard output, or for a temporary file that is
// renamed to path if write succeeds.
func writeTo(s streams, path string, write func(io.Writer) error) error {
	if path == "" {
		b := bufio.NewWriter(s.out)
		if err := write(b); err != nil {
			return err
		}
		return b.Flush()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".chaos-convert-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // fails once the file is renamed
	defer f.Close()
	b := bufio.NewWriter(f)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := f.Chmod(0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}
