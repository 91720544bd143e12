package console

import (
	"fmt"
	"io"
	"sync"
)

// Output is a writer that several goroutines share with a [StatusLine]: text appears above the line, which is erased
// first. A Write holds whole lines.
type Output struct {
	mu    sync.Mutex
	w     io.Writer
	drawn bool // the status line is in the last row
}

// NewOutput returns an output on w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Write erases the status line and writes text.
func (o *Output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.eraseLine()
	return o.w.Write(text)
}

// Fd is the file descriptor of the writer below, or of no file.
func (o *Output) Fd() uintptr {
	if f, ok := o.w.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// draw replaces the status line.
func (o *Output) draw(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fmt.Fprintf(o.w, "\r%s\x1b[K", line)
	o.drawn = true
}

// erase removes the status line.
func (o *Output) erase() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.eraseLine()
}

func (o *Output) eraseLine() {
	if o.drawn {
		fmt.Fprint(o.w, "\r\x1b[K")
	}
	o.drawn = false
}
