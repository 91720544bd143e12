// Package ledger records the resources of a run on disk: processes, directories, mounts, network namespaces, and the
// engine that has its containers. A run removes them itself; the ledger is for a run that was killed.
//
// Read [Ledger] first, then [Sweep]. A ledger is a file in the temporary directory,
// locked by its run (flock) for as long as that run lives. A sweep that gets the
// lock knows that the run is dead, and that no other sweep works on that ledger.
// Only the program that has locked a ledger removes it.
package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/lockchaos/lockchaos/internal/child"
)

const (
	suffix    = ".jsonl"
	openTries = 100 // a sweep may remove the directory or the file before it is locked
)

// entry is one line of a ledger. Each line has one of the fields.
type entry struct {
	Boot string `json:"boot,omitempty"` // first line: the boot that start times are counted from
	child.Identity
	Dir    string `json:"dir,omitempty"`
	Mount  string `json:"mount,omitempty"`
	Engine string `json:"engine,omitempty"` // has containers labeled with the run
	Netns  string `json:"netns,omitempty"`  // a network namespace
	Bridge string `json:"bridge,omitempty"` // a network device
}

// Ledger is the ledger of a live run. Its methods may be called concurrently. A
// nil Ledger records nothing. The run closes it when everything in it has ended.
type Ledger struct {
	path string

	mu   sync.Mutex
	file *os.File // nil once closed
	keep bool     // Close leaves it to a sweep
}

// ourNetwork matches the names of namespaces and devices of runs. A sweep removes
// no others, even if a ledger is corrupt.
var ourNetwork = regexp.MustCompile(`^lc[0-9a-f]{8}([ns][0-9]{1,2})?$`)

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Open creates a ledger for the run name (letters, digits, dot, dash and
// underscore; it need not be unique, a process number is appended).
func Open(name string) (*Ledger, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("opening ledger %q: the name may have letters, digits, dot, dash and underscore", name)
	}
	var l *Ledger
	var err error
	for n := range openTries {
		l, err = create(fmt.Sprintf("%s-%d.%d%s", name, os.Getpid(), n, suffix))
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrExist) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening ledger %q in the temporary directory: %w (set TMPDIR to a writable directory)",
			name, err)
	}
	return l, nil
}

// create creates a ledger, locks it and writes its first line. The error wraps [os.ErrExist] if the name is taken, and
// [os.ErrNotExist] if a sweep has removed the directory or the file in between.
func create(base string) (*Ledger, error) {
	root := Root()
	if err := os.Mkdir(root, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if err := checkRoot(); err != nil {
		return nil, err
	}
	path := filepath.Join(root, base)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	locked, err := lock(file)
	if err == nil && !locked {
		err = os.ErrNotExist // a sweep has locked it, and removes it
	}
	l := &Ledger{path: path, file: file}
	if err == nil {
		err = l.write(entry{Boot: bootID()})
	}
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(path)
		}
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

// Path is the file; empty for a nil Ledger.
func (l *Ledger) Path() string {
	if l == nil {
		return ""
	}
	return l.path
}

// Run is the name under which a sweep reports the run, unique on this machine;
// empty for a nil Ledger.
func (l *Ledger) Run() string {
	if l == nil {
		return ""
	}
	return runOf(l.path)
}

// Process records a process right after its start. One that has exited already is
// ignored, as is any process on a system without /proc, where a sweep could not identify it.
func (l *Ledger) Process(pid int) error {
	if l == nil || pid <= 0 {
		return nil
	}
	id, err := child.Identify(pid)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("recording process %d in the ledger: %w", pid, err)
	}
	return l.record("process", pid, entry{Identity: id})
}

// Dir records a directory that is to be removed with its contents. The path must be
// absolute and below the temporary directory: a sweep removes nothing else.
func (l *Ledger) Dir(path string) error {
	return l.recordPath("directory", path, entry{Dir: path})
}

// Mount records a directory on which something is about to be mounted. It must be
// below the temporary directory: a sweep unmounts nothing else.
func (l *Ledger) Mount(path string) error {
	return l.recordPath("mount", path, entry{Mount: path})
}

// Engine records that the container engine at host (as in DOCKER_HOST) is about to
// get containers and networks labeled with this run's name.
func (l *Ledger) Engine(host string) error { return l.record("engine", host, entry{Engine: host}) }

// Namespace records a network namespace that is about to be created. A sweep removes only names of this form: lc, 8
// hexadecimal digits, and a server.
func (l *Ledger) Namespace(name string) error {
	return l.recordNetwork("namespace", name, entry{Netns: name})
}

// Bridge records a bridge that is about to be created, named in the same way.
func (l *Ledger) Bridge(name string) error {
	return l.recordNetwork("bridge", name, entry{Bridge: name})
}

func (l *Ledger) recordPath(kind, path string, e entry) error {
	if l != nil && !removable(path) {
		return fmt.Errorf("recording %s %s in the ledger: not below %s", kind, path, os.TempDir())
	}
	return l.record(kind, path, e)
}

func (l *Ledger) recordNetwork(kind, name string, e entry) error {
	if l != nil && !ourNetwork.MatchString(name) {
		return fmt.Errorf("recording %s %q in the ledger: not a name of a lockchaos network", kind, name)
	}
	return l.record(kind, name, e)
}

func (l *Ledger) record(kind string, name any, e entry) error {
	if l == nil {
		return nil
	}
	if err := l.write(e); err != nil {
		return fmt.Errorf("recording %s %v in the ledger: %w", kind, name, err)
	}
	return nil
}

// Keep makes Close leave the ledger in place: something in it could not be ended,
// and a later sweep has to retry.
func (l *Ledger) Keep() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep = true
}

// Close removes the ledger, unless Keep was called. It may be called twice.
func (l *Ledger) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	if l.keep {
		return file.Close()
	}
	err := os.Remove(l.path) // before the lock is released
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	err = errors.Join(err, file.Close())
	_ = os.Remove(filepath.Dir(l.path)) // fails, as it should, if there are other ledgers
	if err != nil {
		return fmt.Errorf("removing ledger %s: %w", l.path, err)
	}
	return nil
}

func (l *Ledger) write(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return os.ErrClosed
	}
	_, err = l.file.Write(append(line, '\n')) // one write: unless the disk is full, a kill leaves no partial line
	return err
}

// Root is where this user's ledgers are. It need not exist.
func Root() string { return filepath.Join(os.TempDir(), fmt.Sprintf("lockchaos-%d", os.Getuid())) }

// checkRoot checks that Root is private to this user: every user can write to the temporary directory, and a sweep
// trusts the ledgers in Root. The error wraps [os.ErrNotExist] if there is no Root.
func checkRoot() error {
	info, err := os.Lstat(Root())
	if err != nil {
		return err
	}
	if !info.IsDir() || !private(info) {
		return fmt.Errorf("%s is not a private directory of this user: remove it, or set TMPDIR", Root())
	}
	return nil
}

// removable reports whether a sweep may remove path. It protects the user's files
// from a corrupt ledger.
func removable(path string) bool {
	rel, err := filepath.Rel(os.TempDir(), path)
	return err == nil && filepath.IsAbs(path) && filepath.Clean(path) == path &&
		rel != "." && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// bootID identifies this boot of the machine; empty if the system has no such ID.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
