package filelock

import (
	"errors"
	"syscall"
	"testing"
)

// TestUnsupported: every error of a file system without locks is the same to callers, and no other one is.
func TestUnsupported(t *testing.T) {
	for err, want := range map[error]bool{syscall.ENOLCK: true, syscall.ENOSYS: true, errors.ErrUnsupported: true,
		syscall.EIO: false, nil: false} {
		if got := unsupported(err); errors.Is(got, errors.ErrUnsupported) != want || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}
