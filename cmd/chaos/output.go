package main

import (
	"errors"
	"io"
	"os"

	"github.com/lockchaos/lockchaos/internal/format"
)

// printableWriter passes written bytes through format.Printable. Each Write must hold whole runes.
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

// Fd is the file descriptor of the output if it is a file, such as a terminal.
func (o *checkedOutput) Fd() uintptr {
	if f, ok := o.Writer.(*os.File); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}
