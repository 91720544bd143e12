// Package golden compares the output of a test with a file of the repository, or with a generated part of one. With the
// flag -update of the test, the file is written instead. Only tests import it.
package golden

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

//nolint:gochecknoglobals // flag.Parse has to know the flag
var update = flag.Bool("update", false, "write golden files and generated tables instead of comparing them")

// File compares got with the file at path.
func File(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		write(t, path, got)
		return
	}
	compare(t, path, read(t, path), got)
}

// Block compares the part of the file at path between the first begin and the next end with the result of want for it.
func Block(t testing.TB, path, begin, end string, want func(block string) string) {
	t.Helper()
	before, rest, found := strings.Cut(read(t, path), begin)
	block, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has nothing between %q and %q", path, begin, end)
	}
	generated := want(block)
	if *update {
		write(t, path, before+begin+generated+end+after)
		return
	}
	compare(t, path, block, generated)
}

func compare(t testing.TB, path, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not current; if the difference is intended, run the test with -update (-want +got):\n%s", path, diff)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (with -update the test writes golden files)", err)
	}
	return string(text)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
