package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Format is the version of the layout that this package writes and reads.
const Format = 3

// Root is the default directory for runs, relative to the working directory.
const Root = "chaos-runs"

// Latest is the name of the link to the newest run: one for each scenario, one for all scenarios.
const Latest = "latest"

// stamp is the format of the time in a directory's name, which sorts by time.
const stamp = "20060102T150405.000Z"

// Dir is the directory of one run. It needs no closing; its methods may be called from several goroutines.
type Dir struct {
	Path    string // of the directory, links resolved
	ID      string // scenario/UTC time-seed, as in Manifest.ID
	LinkErr error  // of Create: why latest does not point here
}

// Create makes root/scenario/time-seed and points latest at it. An empty root is [Root]; see [SafeName] for scenario.
// Some file systems have no links, so a link that cannot be set is only reported in LinkErr.
func Create(root, scenario string, seed uint64, now time.Time) (*Dir, error) {
	if root == "" {
		root = Root
	}
	name := SafeName(scenario)
	parent := filepath.Join(root, name)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, explain("creating directory for runs "+parent, err)
	}
	base := fmt.Sprintf("%s-%d", now.UTC().Format(stamp), seed)
	made, err := mkdirNew(parent, base)
	if err != nil {
		return nil, explain("creating run directory in "+parent, err)
	}
	path := filepath.Join(parent, made)
	if err := os.Mkdir(filepath.Join(path, LogsDir), 0o755); err != nil {
		return nil, explain("creating directory for logs in "+path, err)
	}
	linkErr := errors.Join(
		link(filepath.Join(parent, Latest), made),
		link(filepath.Join(root, Latest), filepath.Join(name, made)),
	)
	return &Dir{Path: path, ID: name + "/" + made, LinkErr: linkErr}, nil
}

// Writable reports why no runs can be written under root. It leaves nothing there. An empty root is [Root].
func Writable(root string) error {
	if root == "" {
		root = Root
	}
	made := ""
	for dir := filepath.Clean(root); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			break
		}
		made = dir
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return explain("creating directory for runs "+root, err)
	}
	f, err := os.CreateTemp(root, ".writable-*")
	if err == nil {
		_, err = f.Write(make([]byte, 4<<10))
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if made != "" { // remove the directories that MkdirAll has made
		for dir := filepath.Clean(root); os.Remove(dir) == nil && dir != made; dir = filepath.Dir(dir) {
		}
	}
	if err != nil {
		return explain("writing to directory for runs "+root, err)
	}
	return nil
}

// mkdirNew makes base, or base-2, base-3 … if two runs start in one millisecond.
func mkdirNew(parent, base string) (string, error) {
	name := base
	for n := 2; ; n++ {
		err := os.Mkdir(filepath.Join(parent, name), 0o700) // logs may have the clients' data
		if err == nil || !errors.Is(err, fs.ErrExist) || n > 1000 {
			return name, err
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}

// link points name at target atomically, so that a reader finds the old run or the new one.
func link(name, target string) error {
	if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return fmt.Errorf("linking %s: a file or directory of that name exists", name)
	}
	temp := fmt.Sprintf("%s.%d", name, os.Getpid())
	if err := os.Symlink(target, temp); err != nil {
		return fmt.Errorf("linking %s: %w", name, err)
	}
	if err := os.Rename(temp, name); err != nil {
		return errors.Join(fmt.Errorf("linking %s: %w", name, err), os.Remove(temp))
	}
	return nil
}

// Open opens the run directory at path, which may be a link; latest alone is the newest run under [Root]. Links are
// followed now, so that a later run does not change the directory.
func Open(path string) (*Dir, error) {
	if path == Latest {
		if _, err := os.Lstat(path); err != nil {
			path = filepath.Join(Root, Latest)
		}
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, explain("opening run directory "+path, err)
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return nil, explain("opening run directory "+path, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("opening run directory %s: it is a file; name its directory", path)
	}
	d := &Dir{Path: resolved, ID: filepath.Base(filepath.Dir(resolved)) + "/" + filepath.Base(resolved)}
	m, err := d.ReadManifest()
	if err != nil {
		return nil, d.notARun(path, err)
	}
	if m.ID != "" {
		d.ID = m.ID
	}
	return d, nil
}

// notARun adds advice to the error of a missing manifest.
func (d *Dir) notARun(path string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, lerr := os.Lstat(filepath.Join(d.Path, Latest)); lerr == nil {
		return fmt.Errorf("opening run directory %s: it contains run directories; name one of them, such as %s",
			path, filepath.Join(path, Latest))
	}
	if _, herr := os.Stat(d.File(HistoryFile)); herr == nil {
		return fmt.Errorf("opening run directory %s: it has no %s; to judge its history alone, run: chaos check %s",
			path, ManifestFile, filepath.Join(path, HistoryFile))
	}
	return fmt.Errorf("opening run directory %s: it has neither %s nor %s, so it is not a run directory; "+
		"runs are in %s/SCENARIO/", path, ManifestFile, HistoryFile, Root)
}

// File is the path of the file of that name, whether it exists or not.
func (d *Dir) File(name string) string { return filepath.Join(d.Path, name) }

// Has reports whether the run directory has a file of that name.
func (d *Dir) Has(name string) bool {
	info, err := os.Stat(d.File(name))
	return err == nil && info.Mode().IsRegular()
}

// LogFile opens logs/name, see [SafeName], for appending. It creates the file if necessary.
func (d *Dir) LogFile(name string) (*os.File, error) {
	path := filepath.Join(d.Path, LogsDir, SafeName(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, explain("creating directory for logs", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, explain("opening log "+path, err)
	}
	return f, nil
}

// Logs are the names of the files in logs/, sorted.
func (d *Dir) Logs() []string {
	entries, err := os.ReadDir(filepath.Join(d.Path, LogsDir))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// SafeName makes any text the name of a file: characters other than letters, digits, "-", "_" and "." become "-". The
// name does not begin with a dot and has 1 to 100 bytes.
func SafeName(s string) string {
	keep := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}
	s = strings.TrimLeft(strings.Map(keep, s), ".")
	if len(s) > 100 {
		s = s[:100]
	}
	if s == "" || s == Latest {
		return "run-" + s
	}
	return s
}

// explain adds advice to the errors of file systems that users have.
func explain(doing string, err error) error {
	switch _, _, advice := noRoom(err); {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w; choose a directory that you may write to (--out)", doing, err)
	case advice != "":
		return fmt.Errorf("%s: %w; %s", doing, err, advice)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s: %w; choose another directory (--out)", doing, err)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: a part of the path is a file: %w; choose another directory (--out)", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
