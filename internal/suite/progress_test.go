package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"
)

// TestProgress: a suite that is running states what runs, what is left and what became of the others, also to those who
// read its directory; an ended one leaves no progress.
func TestProgress(t *testing.T) {
	o := options(t, "safe-a", "safe-b", "unsafe-c")
	o.Jobs, o.InOrder = 1, true
	var sentences []string
	var read []Progress
	o.Watch = func(p Progress) {
		sentences = append(sentences, fmt.Sprintf("%d of %d: %s", len(p.Suite.Rows), p.Total, p.Sentence()))
		if p, err := ReadProgress(os.DirFS(o.Out)); err == nil {
			read = append(read, p)
		}
	}
	s := run(t, o)
	want := []string{
		"0 of 3: 3 left", "0 of 3: 2 left; running safe-a", "1 of 3: 2 left; 1 of 1 run as expected",
		"1 of 3: 1 left; 1 of 1 run as expected; running safe-b", "2 of 3: 1 left; 2 of 2 runs as expected",
		"2 of 3: 2 of 2 runs as expected; running unsafe-c", "3 of 3: 2 of 3 runs as expected: 1 different",
	}
	if !slices.Equal(sentences, want) {
		t.Errorf("%q, want %q", sentences, want)
	}
	if len(read) < 3 || read[0].Total != 3 || len(read[0].Suite.Rows) != 0 ||
		!slices.Equal(read[1].Running, []string{"safe-a"}) || len(read[2].Suite.Rows) != 1 {
		t.Errorf("the directory at the start, in the first row and after it: %+v", read)
	}
	written(t, s, o.Out)
	if _, err := ReadProgress(os.DirFS(o.Out)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
}
