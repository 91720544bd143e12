package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/filelock"
)

const (
	dataPrefix = "lockchaos-data-"
	ownerFile  = "owner" // in a data directory, with the number of its program; locked for as long as that lives
	newPrefix  = ".new-" // a file that is not locked yet
)

// DataDir is a temporary directory for the data of servers. A sweep recognizes it without a ledger: its program holds a
// lock in it.
type DataDir struct {
	Path     string
	Unlocked error // why it has no lock, of [NewOwnedDir]; nil: it has one
	lock     *os.File
}

// NewDataDir creates a data directory that only this user can read, and records it.
func (l *Ledger) NewDataDir() (*DataDir, error) {
	path := filepath.Join(os.TempDir(), dataPrefix+rand.Text()[:10])
	err := l.Dir(path) // before it exists: this program may be killed in between
	if err == nil {
		err = os.Mkdir(path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("creating a directory for data: %w", err)
	}
	d := &DataDir{Path: path}
	if err := d.own(); err != nil {
		return nil, errors.Join(fmt.Errorf("creating a directory for data: %w", err), d.Remove())
	}
	return d, nil
}

// NewOwnedDir creates a directory in parent whose name begins with prefix, as [os.MkdirTemp] does. If this program is
// killed, the next [SweepOwned] of parent removes it; on a file system without locks nothing does.
func NewOwnedDir(parent, prefix string) (*DataDir, error) {
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	d := &DataDir{Path: path}
	if d.Unlocked = d.own(); d.Unlocked != nil && !errors.Is(d.Unlocked, errors.ErrUnsupported) {
		return nil, errors.Join(d.Unlocked, d.Remove())
	}
	return d, nil
}

// SweepOwned removes the directories of [NewOwnedDir] with that parent and prefix whose program has exited. Kept ones,
// and other users', stay.
func SweepOwned(ctx context.Context, parent, prefix string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return fmt.Errorf("sweeping: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		owner, err := ownerIfDead(ctx, path)
		if owner != nil {
			err = errors.Join(os.RemoveAll(path), owner.Close())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// own locks a file before it gets the name that sweeps look for.
func (d *DataDir) own() (err error) {
	if d.lock, err = os.CreateTemp(d.Path, newPrefix); err != nil {
		return err
	}
	if locked, err := filelock.Try(d.lock); err != nil || !locked {
		return errors.Join(errors.New("locking it"), err)
	}
	if _, err := fmt.Fprint(d.lock, os.Getpid()); err != nil {
		return err
	}
	return os.Rename(d.lock.Name(), filepath.Join(d.Path, ownerFile))
}

// Remove removes the directory. It may be called twice.
func (d *DataDir) Remove() error {
	err := os.RemoveAll(d.Path) // before the lock is released
	d.unlock()
	return err
}

// Keep leaves the directory in place: no later sweep removes it.
func (d *DataDir) Keep() error {
	err := os.Remove(filepath.Join(d.Path, ownerFile))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	d.unlock()
	return err
}

func (d *DataDir) unlock() {
	if d.lock != nil {
		_ = d.lock.Close()
		d.lock = nil
	}
}

// sweepData removes the data directories of dead programs that are in no ledger, with the processes that run in them
// and the disks that are mounted there, and returns their names.
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

// ownerIfDead is the locked owner file of a directory; nil if the directory is not this user's, has no owner (another
// version has made it, it is being made, or it is kept), or its owner lives.
func ownerIfDead(ctx context.Context, path string) (*os.File, error) {
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
	var pid int
	_, _ = fmt.Fscan(owner, &pid) // 0 if the file is empty, as of an older version
	locked, err := lockOfDead(ctx, owner, pid)
	if errors.Is(err, os.ErrNotExist) {
		err = nil // its program, or another sweep, has removed it
	}
	if err != nil || !locked {
		return nil, errors.Join(err, owner.Close())
	}
	return owner, nil
}

// sweepDataDir removes a data directory whose owner is dead; see ownerIfDead.
func sweepDataDir(ctx context.Context, path string) (removed []string, err error) {
	owner, err := ownerIfDead(ctx, path)
	if owner == nil {
		return nil, err
	}
	defer owner.Close()
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
