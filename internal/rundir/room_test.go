package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// TestJoinUnwritten: files that a full disk did not take are one error, which names them; others remain.
func TestJoinUnwritten(t *testing.T) {
	unwritten := func(name string, why error) error {
		return explain("writing it", fmt.Errorf("more: %w", &fs.PathError{Op: "write", Path: "runs/x/" + name, Err: why}))
	}
	other := errors.New("something else")
	for _, c := range []struct {
		err  error
		want string
		is   error
	}{
		{nil, "", nil},
		{other, "something else", other},
		{errors.Join(other, unwritten("a", fs.ErrPermission)), "a part", fs.ErrPermission},
		{
			errors.Join(unwritten("b", syscall.ENOSPC), errors.Join(other, unwritten("a", syscall.ENOSPC)),
				unwritten("b", syscall.ENOSPC)),
			"the disk is full (no space left on device): not written, or not complete, in runs/x: a, b; make room " +
				"(old runs are in chaos-runs) or choose another disk (--out)\nsomething else", syscall.ENOSPC,
		},
		{
			unwritten("a", syscall.EFBIG), "the limit on the size of files is too small (file too large): not written, or " +
				"not complete, in runs/x: a; raise it (ulimit -f)", syscall.EFBIG,
		},
	} {
		got := JoinUnwritten(c.err)
		if c.want == "a part" {
			c.want = c.err.Error()
		}
		if text := fmt.Sprint(got); c.err != nil && text != c.want || !errors.Is(got, c.is) {
			t.Errorf("%v became\n%s\nwant\n%s", c.err, text, c.want)
		}
		if c.err == nil && got != nil {
			t.Errorf("nil became %v", got)
		}
	}
}
