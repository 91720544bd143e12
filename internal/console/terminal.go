// Package console shows people the work of a command on a terminal, or in a log: the progress of a run and the status
// of long work. It prints no results.
//
// Read [ShowRun] and [ShowStatus] first.
package console

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Width is the width of w in columns, or 0 if it is not a terminal. A writer that is no file may have the method Fd of
// one.
func Width(w io.Writer) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width == 0 { // a pseudo-terminal whose size was never set has 0 columns
		return 80
	}
	return width
}

// liveWidth is the width of w if its lines may be redrawn; 0 if w is a log: no terminal, a dumb one, or a CI job's.
func liveWidth(w io.Writer) int {
	if InCI() || os.Getenv("TERM") == "dumb" {
		return 0
	}
	return Width(w)
}

// InCI reports whether this is a job of a CI service: all of them set CI.
func InCI() bool { return os.Getenv("CI") != "" }

// Color reports whether w gets colors (https://no-color.org).
func Color(w io.Writer) bool { return Width(w) > 0 && os.Getenv("NO_COLOR") == "" }

// fit cuts a line so that it does not wrap in a terminal of that width.
func fit(line string, width int) string {
	r := []rune(line)
	return string(r[:min(len(r), max(width-1, 0))])
}
