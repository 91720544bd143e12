package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/lockchaos/lockchaos/internal/console"
)

// keptInMemory is how much of a pipe is kept in memory; the rest goes to a
// temporary file.
const keptInMemory = 64 << 20

// input is a history that can be read more than once, because an ambiguous
// history is judged under several readings. A pipe is kept while it is read for
// the first time. Only done and events may be used by other goroutines.
type input struct {
	name    string   // for messages
	clients int      // of the run that it belongs to; 0: unknown
	file    *os.File // closed by Close; nil: nothing to close

	whole io.ReaderAt // a regular file; nil: a pipe
	begin int64       // of the history in it
	size  int64       // of the history; 0: unknown
	pipe  io.Reader   // the part that has not been read yet
	kept  spool       // the part of the pipe that has been read

	done   atomic.Int64 // bytes read in this reading
	events atomic.Int64 // events read in this reading
}

// openInput opens a file, a run directory, or with "-" standard input.
func openInput(s streams, path string) (*input, error) {
	if path == "-" {
		in := &input{name: "standard input"}
		in.from(s.in)
		return in, nil
	}
	file, clients, err := historyFile(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, badPath(err)
	}
	in := &input{name: file, clients: clients, file: f}
	in.from(f)
	return in, nil
}

// from sets the source, and whether it can be read again from its current offset.
func (in *input) from(r io.Reader) {
	in.pipe = r
	f, ok := r.(*os.File)
	if !ok {
		return
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if at, err := f.Seek(0, io.SeekCurrent); err == nil && at <= info.Size() {
		in.whole, in.begin, in.size = f, at, info.Size()-at
	}
}

// reader reads the history from its beginning. It invalidates the reader before.
func (in *input) reader() io.Reader {
	in.done.Store(0)
	in.events.Store(0)
	if in.whole != nil {
		return &counting{io.NewSectionReader(in.whole, in.begin, 1<<62), &in.done}
	}
	return &counting{io.MultiReader(in.kept.reader(), io.TeeReader(in.pipe, &in.kept)), &in.done}
}

// Close closes the file and drops the kept part. Standard input stays open.
func (in *input) Close() error {
	in.kept.close()
	if in.file == nil {
		return nil
	}
	return in.file.Close()
}

// status is the status line of reading.
func (in *input) status() console.Status {
	return console.Status{Text: "reading", Done: in.done.Load(), Total: in.size, Count: in.events.Load(), Noun: "event"}
}

// counting counts the bytes that are read.
type counting struct {
	r io.Reader
	n *atomic.Int64
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// spool keeps written bytes: in memory, and beyond keptInMemory in a file that is unlinked at once, so that it never
// outlives the program.
type spool struct {
	mem  []byte
	file *os.File
	size int64 // of the file
}

func (k *spool) Write(b []byte) (int, error) {
	if k.file == nil && len(k.mem)+len(b) <= keptInMemory {
		k.mem = append(k.mem, b...)
		return len(b), nil
	}
	if k.file == nil {
		f, err := os.CreateTemp("", "chaos-check-*")
		if err != nil {
			return 0, spoolError(err)
		}
		k.file = f
		if err := os.Remove(f.Name()); err != nil {
			return 0, spoolError(err)
		}
	}
	n, err := k.file.WriteAt(b, k.size)
	k.size += int64(n)
	if err != nil {
		return n, spoolError(err)
	}
	return n, nil
}

func spoolError(err error) error {
	return fmt.Errorf("buffering the pipe: %w (write the history to a file and check that)", err)
}

// reader reads the bytes kept so far.
func (k *spool) reader() io.Reader {
	if k.file == nil {
		return bytes.NewReader(k.mem)
	}
	return io.MultiReader(bytes.NewReader(k.mem), io.NewSectionReader(k.file, 0, k.size))
}

func (k *spool) close() {
	if k.file != nil {
		k.file.Close()
	}
	*k = spool{}
}
