package main

import (
	"errors"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/lockchaos/lockchaos/internal/format"
)

// terminal is the width of w in columns, or 0 if it is not a terminal.
func terminal(w io.Writer) int {
	if o, ok := w.(*checkedOutput); ok {
		w = o.Writer
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width == 0 { // a pseudo-terminal whose size was never set has 0 columns
		return 80
	}
	return width
}

// liveWidth is the width of w if its lines may be redrawn; 0 if w is a log: no
// terminal, a dumb one, or that of a CI job.
func liveWidth(w io.Writer) int {
	if inCI() || os.Getenv("TERM") == "dumb" {
		return 0
	}
	return terminal(w)
}

// inCI reports whether this is a job of a CI service: all of them set CI.
func inCI() bool { return os.Getenv("CI") != "" }

// color reports whether w gets colors (https://no-color.org).
func color(w io.Writer) bool { return terminal(w) > 0 && os.Getenv("NO_COLOR") == "" }

// fit cuts a line so that it does not wrap in a terminal of that width.
func fit(line string, width int) string {
	r := []rune(line)
	return string(r[:min(len(r), max(width-1, 0))])
}

// printableWriter passes what is written through format.Printable. Each Write
// must hold whole runes.
type printableWriter struct{ w io.Writer }

func (p printableWriter) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, format.Printable(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// checkedOutput remembers the first error of a write: most code that prints ignores it.
type checkedOutput struct {
	io.Writer
	err error
}

func (o *checkedOutput) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// check is err, or the error of a write if err is nothing but a verdict: nobody has seen the verdict then.
func (o *checkedOutput) check(err error) error {
	if verdict := (*codeError)(nil); o.err == nil || err != nil && (!errors.As(err, &verdict) || verdict.err != nil) {
		return err
	}
	return &codeError{exitEnvironment, o.err}
}
