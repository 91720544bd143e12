package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/internal/child"
)

const (
	dataPrefix = "lockchaos-data-"
	ownerFile  = "owner" // in a data directory; locked for as long as its program lives
)

// DataDir is a temporary directory for the data of servers. Unlike what only a ledger
// names, a sweep recognizes it by itself: its program holds a lock in it.
type DataDir struct {
	Path string
	lock *os.File
}

// NewDataDir creates a data directory that only this user can read, and records it.
func (l *Ledger) NewDataDir() (*DataDir, error) {
	path, err := os.MkdirTemp("", dataPrefix)
	if err != nil {
		return nil, fmt.Errorf("creating a directory for data: %w", err)
	}
	d := &DataDir{Path: path}
	if err := errors.Join(l.Dir(path), d.own()); err != nil {
		return nil, errors.Join(fmt.Errorf("creating a directory for data: %w", err), d.Remove())
	}
	return d, nil
}

// own locks a file before it gets the name that sweeps look for.
func (d *DataDir) own() (err error) {
	if d.lock, err = os.CreateTemp(d.Path, newPrefix); err != nil {
		return err
	}
	if locked, err := lock(d.lock); err != nil || !locked {
		return errors.Join(errors.New("locking it"), err)
	}
	return os.Rename(d.lock.Name(), filepath.Join(d.Path, ownerFile))
}

// Remove removes the directory. It may be called twice.
func (d *DataDir) Remove() error {
	err := os.RemoveAll(d.Path) // before the lock is released
	if d.lock != nil {
		_ = d.lock.Close()
		d.lock = nil
	}
	return err
}

// sweepData removes the data directories of dead programs that are in no ledger, with
// the processes that run in them and the disks that are mounted there, and returns
// what it has removed.
func sweepData(ctx context.Context) (removed []string, err error) {
	paths, err := filepath.Glob(filepath.Join(os.TempDir(), dataPrefix+"*"))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, path := range paths {
		if ctx.Err() != nil {
			break
		}
		more, err := sweepDataDir(ctx, path)
		removed, errs = append(removed, more...), append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// sweepDataDir leaves a directory alone that is not this user's, that has no owner (another version has made it, or
// it is being made), or whose owner lives.
func sweepDataDir(ctx context.Context, path string) (removed []string, err error) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || !private(info) {
		return nil, nil
	}
	owner, err := os.OpenFile(filepath.Join(path, ownerFile), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer owner.Close()
	if free, err := lock(owner); err != nil || !free {
		return nil, err
	}
	for _, id := range runningBelow(path) {
		ctx, cancel := context.WithTimeout(ctx, endWait)
		killed, err := id.Kill(ctx)
		cancel()
		if err != nil {
			return removed, err
		}
		if killed {
			removed = append(removed, "process "+strconv.Itoa(id.PID))
		}
	}
	for _, mount := range mountsBelow(path) {
		if _, err := unmount(mount); err != nil {
			return removed, fmt.Errorf("unmounting %s: %w", mount, err)
		}
		removed = append(removed, "disk "+mount)
	}
	if err := os.RemoveAll(path); err != nil {
		return removed, err
	}
	return append(removed, "directory "+path), nil
}

// runningBelow are the processes whose working directory is in dir.
func runningBelow(dir string) (found []child.Identity) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // none without /proc
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil || !below(dir, cwd) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if id, err := child.Identify(pid); err == nil {
			found = append(found, id)
		}
	}
	return found
}

// mountsBelow are the mounts in dir, the innermost first.
func mountsBelow(dir string) (found []string) {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil // only Linux has it
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && below(dir, words[1]) {
			found = append([]string{words[1]}, found...)
		}
	}
	return found
}

func below(dir, path string) bool { return strings.HasPrefix(path, dir+string(filepath.Separator)) }
