package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// longFile is from how many bytes on reading a file is watched.
const longFile = 50 << 20

// watched shows how far the reading of a long file is: a bar on a terminal, a
// line every ten seconds in a log.
type watched struct {
	r     io.Reader
	out   io.Writer
	width int // of the terminal; 0: a log
	size  int64
	done  int64
	next  time.Time
	every time.Duration
	drawn bool
}

func watch(s streams, f *os.File) *watched {
	w := &watched{r: f, out: s.err, every: heartbeat}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		w.size = info.Size()
	}
	if os.Getenv("CI") == "" && os.Getenv("TERM") != "dumb" {
		w.width = terminal(s.err)
	}
	if w.width > 0 {
		w.every = 100 * time.Millisecond
	}
	w.next = time.Now().Add(w.every)
	return w
}

// Read reads, and says so if it is time.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	w.done += int64(n)
	if w.size < longFile {
		return n, err
	}
	if now := time.Now(); now.After(w.next) {
		w.next = now.Add(w.every)
		w.show()
	}
	return n, err
}

func (w *watched) show() {
	text := fmt.Sprintf("reading: %d of %d MB", w.done/1e6, w.size/1e6)
	if w.width == 0 {
		fmt.Fprintln(w.out, text)
		return
	}
	room := max(0, min(40, w.width-len(text)-4))
	full := min(room, int(w.done*int64(room)/w.size))
	fmt.Fprintf(w.out, "\r%s [%s%s]", text, strings.Repeat("#", full), strings.Repeat(" ", room-full))
	w.drawn = true
}

// end leaves the terminal to the result.
func (w *watched) end() {
	if w.drawn {
		fmt.Fprint(w.out, "\r\x1b[K")
	}
}
