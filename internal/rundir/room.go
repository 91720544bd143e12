package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/lockchaos/lockchaos/internal/format"
)

// noRoom are the reasons why a disk takes no more of a file, with advice.
func noRoom(err error) (reason syscall.Errno, text, advice string) {
	makeRoom := "make room (old runs are in " + Root + ") or choose another disk (--out)"
	for _, row := range []struct {
		reason       syscall.Errno
		text, advice string
	}{
		{syscall.ENOSPC, "the disk is full", makeRoom},
		{syscall.EDQUOT, "the quota of the disk is used up", makeRoom},
		{syscall.EFBIG, "the limit on the size of files is too small", "raise it (ulimit -f)"},
	} {
		if errors.Is(err, row.reason) {
			return row.reason, row.text, row.advice
		}
	}
	return 0, "", ""
}

// JoinUnwritten makes one error of the parts of err (see [errors.Join]) that say that a disk has no room for a file:
// its reason, the names of the files, and advice. It comes first, and wraps the reason, a [syscall.Errno]. Without such
// parts it is err.
func JoinUnwritten(err error) error {
	var reason syscall.Errno
	var text, advice, dir string
	var files []string
	var others []error
	for _, part := range format.Errors(err) {
		path, is := errors.AsType[*fs.PathError](part)
		if no, t, a := noRoom(part); is && no != 0 {
			reason, text, advice, dir = no, t, a, filepath.Dir(path.Path)
			files = append(files, filepath.Base(path.Path))
			continue
		}
		others = append(others, part)
	}
	if reason == 0 {
		return err
	}
	slices.Sort(files)
	names := strings.Join(slices.Compact(files), ", ")
	full := fmt.Errorf("%s (%w): not written, or not complete, in %s: %s; %s", text, reason, dir, names, advice)
	return errors.Join(append([]error{full}, others...)...)
}
