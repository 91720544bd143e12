package ledger

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/filelock"
)

// lock locks a file unless another program has it locked. The error wraps [os.ErrNotExist] if the file was removed.
func lock(file *os.File) (locked bool, err error) {
	if locked, err := filelock.Try(file); err != nil {
		return false, fmt.Errorf("locking %s: %w", file.Name(), err)
	} else if !locked {
		return false, nil
	}
	named, err := os.Lstat(file.Name())
	if err != nil {
		return false, err
	}
	opened, err := file.Stat()
	if err == nil && !os.SameFile(named, opened) { // removed, and created again
		err = os.ErrNotExist
	}
	return err == nil, err
}

// lockOfDead locks a file that process pid had locked; false if another program has it locked. The lock belongs to the
// open file (flock(2)), which a killed program shares with a child that it was about to start, until that child has
// called execve(2) or exited. So the lock is awaited if pid has exited or is exiting. The error is lock's.
func lockOfDead(ctx context.Context, file *os.File, pid int) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	tick := time.NewTicker(time.Millisecond) // the release of a lock sends no event
	defer tick.Stop()
	for {
		if locked, err := lock(file); locked || err != nil || !child.Ending(pid) {
			return locked, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-tick.C:
		}
	}
}
