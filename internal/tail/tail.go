// Package tail reads files that are still being written.
package tail

import (
	"context"
	"errors"
	"io"
	"time"
)

// pollEvery is how often a file is polled at its end.
const pollEvery = 100 * time.Millisecond

// Reader reads a file that grows: at its end it waits for more, until the context ends or More returns false.
type Reader struct {
	Context context.Context
	File    io.Reader
	More    func() bool // whether more may be added
	Idle    func()      // called before each wait

	last bool // no more will be added
}

func (r *Reader) Read(b []byte) (int, error) {
	for {
		n, err := r.File.Read(b)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		if r.last || r.Context.Err() != nil {
			return 0, io.EOF
		}
		r.last = !r.More() // read the rest that was written before the writer ended
		if r.last {
			continue
		}
		r.Idle()
		select {
		case <-r.Context.Done():
		case <-time.After(pollEvery):
		}
	}
}
