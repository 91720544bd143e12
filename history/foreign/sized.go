package foreign

import (
	"io"

	"github.com/lockchaos/lockchaos/history"
)

// sizedAfter is the number of events after which the number of all operations is estimated: so many that the reader's
// buffer does not matter.
const sizedAfter = 100_000

// sizedBuilder makes room for all operations of a history of known size, once it has read enough to estimate their
// number.
type sizedBuilder struct {
	*history.Builder
	r      io.Reader
	size   int64 // of the history in bytes
	bytes  int64 // read
	events int   // added
}

func (b *sizedBuilder) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.bytes += int64(n)
	return n, err
}

func (b *sizedBuilder) add(e *history.Event, line int) error {
	if err := b.Builder.Add(e, line); err != nil {
		return err
	}
	if b.events++; b.events != sizedAfter {
		return nil
	}
	perByte := float64(len(b.History().Spans)) / float64(b.bytes)
	b.Grow(int(1.03 * perByte * float64(max(0, b.size-b.bytes))))
	return nil
}
