package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// keptInMemory is how much of what comes through a pipe is kept in memory; what
// is more goes to a temporary file.
const keptInMemory = 64 << 20

// input is a history that can be read more than once, wherever it comes from: a
// second reading is needed when it may mean two things. What comes through a pipe
// is kept while it is read for the first time. It belongs to one goroutine, but
// for its counts; Close ends it.
type input struct {
	name    string   // for messages
	clients int      // of the run that it belongs to; 0: not known
	file    *os.File // closed at the end; nil: nothing is to be closed

	whole io.ReaderAt // a regular file; nil: a pipe
	begin int64       // of the history in it
	size  int64       // of the history; 0: not known
	pipe  io.Reader   // what has not been read yet
	kept  spool       // what has

	done   atomic.Int64 // bytes of this reading
	events atomic.Int64 // the same in events
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

// from finds out whether r can be read again from where it stands.
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

// reader reads the history from its beginning. The one before is not to be used any more.
func (in *input) reader() io.Reader {
	in.done.Store(0)
	in.events.Store(0)
	if in.whole != nil {
		return &counting{io.NewSectionReader(in.whole, in.begin, 1<<62), &in.done}
	}
	return &counting{io.MultiReader(in.kept.reader(), io.TeeReader(in.pipe, &in.kept)), &in.done}
}

// Close closes the file and forgets what was kept. Standard input stays open.
func (in *input) Close() error {
	in.kept.close()
	if in.file == nil {
		return nil
	}
	return in.file.Close()
}

// progress is how far the reading is; for another goroutine.
func (in *input) progress() stage {
	return stage{text: "reading", done: in.done.Load(), total: in.size, count: in.events.Load(), noun: "events"}
}

// counting tells how many bytes were read.
type counting struct {
	r io.Reader
	n *atomic.Int64
}

// Read reads.
func (c *counting) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// spool keeps what is written: in memory, and what is more in a file that has no
// name any more, so that nothing is left of it however the program ends.
type spool struct {
	mem  []byte
	file *os.File
	size int64 // of the file's part
}

// Write keeps b.
func (k *spool) Write(b []byte) (int, error) {
	if k.file == nil && len(k.mem)+len(b) <= keptInMemory {
		k.mem = append(k.mem, b...)
		return len(b), nil
	}
	if k.file == nil {
		f, err := os.CreateTemp("", "chaos-check-*")
		if err != nil {
			return 0, fmt.Errorf("keeping what came through the pipe: %w (write it to a file, and check that)", err)
		}
		k.file = f
		if err := os.Remove(f.Name()); err != nil {
			return 0, fmt.Errorf("keeping what came through the pipe: %w", err)
		}
	}
	n, err := k.file.WriteAt(b, k.size)
	k.size += int64(n)
	if err != nil {
		return n, fmt.Errorf("keeping what came through the pipe: %w (write it to a file, and check that)", err)
	}
	return n, nil
}

// reader reads what was kept so far.
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
