// Package ledger is what a run has started, on disk as it happens: processes,
// folders, mounts, network namespaces, and which engine has containers of it. It is not how a run ends
// what it has started (that is the work of whoever started it); it is how somebody
// else can, when the run was killed.
//
// Read [Ledger] first, then [Sweep]. A ledger is a file in the temporary
// folder, locked by its run (flock) for as long as that run lives: so a sweep
// that gets the lock knows that the run is gone, and that no other sweep is at
// work on the same ledger.
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
	suffix  = ".jsonl"
	newMark = ".new-" // a ledger that is not locked yet

	folderTries = 100 // the folder may vanish between the look and the use
)

// entry is one line of a ledger. Exactly one field is meant per line, except
// that PID and Started belong together.
type entry struct {
	Boot    string `json:"boot,omitempty"` // first line: which boot the start times count from
	PID     int    `json:"pid,omitempty"`
	Started uint64 `json:"started,omitempty"` // clock ticks since boot
	Dir     string `json:"dir,omitempty"`
	Mount   string `json:"mount,omitempty"`
	Engine  string `json:"engine,omitempty"` // of containers labelled with the run
	Netns   string `json:"netns,omitempty"`  // a network namespace
	Bridge  string `json:"bridge,omitempty"` // a network device
}

// Ledger is the ledger of a running run. Its methods may be called from several
// goroutines. A nil Ledger writes nothing down. The run closes it when
// everything in it has ended.
type Ledger struct {
	path string

	mu   sync.Mutex
	file *os.File // nil once closed
	keep bool     // Close leaves it to a sweep
}

// ourNetwork is what namespaces and devices of runs are called: the last guard
// between a spoilt ledger and somebody's network.
var ourNetwork = regexp.MustCompile(`^lc[0-9a-f]{8}([ns][0-9]{1,2})?$`)

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Open makes a ledger for the run name (letters, digits, dot, dash and
// underline; a process number is added, so that it need not be unique).
func Open(name string) (*Ledger, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("opening ledger %q: the name may hold letters, digits, dot, dash and underline", name)
	}
	root, file, err := newFile()
	if err != nil {
		return nil, opening(name, err)
	}
	l := &Ledger{file: file}
	if err := l.begin(root, name); err != nil {
		_ = os.Remove(file.Name())
		_ = file.Close()
		return nil, opening(name, err)
	}
	return l, nil
}

func opening(name string, err error) error {
	return fmt.Errorf("opening ledger %q: %w (it lies in the temporary folder: set TMPDIR to one with room, "+
		"that you may write to)", name, err)
}

// newFile makes a file in the folder for ledgers, again if a run that has just
// ended took the empty folder away in between.
func newFile() (root string, file *os.File, err error) {
	for range folderTries {
		if root, err = folder(); err == nil {
			file, err = os.CreateTemp(root, newMark+"*")
		}
		if !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	return root, file, err
}

// begin locks the new file and only then gives it a name that sweeps look at.
// A link, unlike a rename, fails if that name is taken.
func (l *Ledger) begin(root, name string) error {
	if locked, err := lock(l.file); err != nil || !locked {
		return errors.Join(errors.New("locking it"), err)
	}
	if err := l.write(entry{Boot: bootID()}); err != nil {
		return err
	}
	for n := 0; ; n++ {
		l.path = filepath.Join(root, fmt.Sprintf("%s-%d.%d%s", name, os.Getpid(), n, suffix))
		err := os.Link(l.file.Name(), l.path)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		return os.Remove(l.file.Name())
	}
}

// Path is the file.
func (l *Ledger) Path() string {
	if l == nil {
		return ""
	}
	return l.path
}

// Process writes down a process that the run has started. It is called at once
// after the start. One that has ended already is not worth a line.
func (l *Ledger) Process(pid int) error {
	if l == nil || pid <= 0 {
		return nil
	}
	_, started, err := child.Stat(pid)
	if errors.Is(err, os.ErrNotExist) {
		return nil // ended, or a system without /proc, where a sweep could not know it again
	}
	if err != nil {
		return fmt.Errorf("writing process %d into the ledger: %w", pid, err)
	}
	if err := l.write(entry{PID: pid, Started: started}); err != nil {
		return fmt.Errorf("writing process %d into the ledger: %w", pid, err)
	}
	return nil
}

// Dir writes down a folder that is to be removed with everything in it. The
// path must be absolute and below the temporary folder: a sweep removes nothing else.
func (l *Ledger) Dir(path string) error {
	if l == nil {
		return nil
	}
	if !removable(path) {
		return fmt.Errorf("writing folder %s into the ledger: not below %s", path, os.TempDir())
	}
	if err := l.write(entry{Dir: path}); err != nil {
		return fmt.Errorf("writing folder %s into the ledger: %w", path, err)
	}
	return nil
}

// Mount writes down a folder on which something is about to be mounted. It must
// be below the temporary folder: a sweep unmounts nothing else.
func (l *Ledger) Mount(path string) error {
	if l == nil {
		return nil
	}
	if !removable(path) {
		return fmt.Errorf("writing mount %s into the ledger: not below %s", path, os.TempDir())
	}
	if err := l.write(entry{Mount: path}); err != nil {
		return fmt.Errorf("writing mount %s into the ledger: %w", path, err)
	}
	return nil
}

// Run is the name under which a sweep reports the run, unique on this machine;
// empty for a nil Ledger.
func (l *Ledger) Run() string {
	if l == nil {
		return ""
	}
	return runOf(l.path)
}

// Engine writes down that the container engine at host (as DOCKER_HOST has it) is
// about to get containers and networks with this run's name as label.
func (l *Ledger) Engine(host string) error {
	if l == nil {
		return nil
	}
	if err := l.write(entry{Engine: host}); err != nil {
		return fmt.Errorf("writing engine %s into the ledger: %w", host, err)
	}
	return nil
}

// Namespace writes down a network namespace that is about to be made. Its name
// must be one that a sweep believes to be ours: lc, 8 hexadecimal digits, and a server.
func (l *Ledger) Namespace(name string) error { return l.network(name, entry{Netns: name}) }

// Bridge writes down a bridge that is about to be made, with a name of that kind.
func (l *Ledger) Bridge(name string) error { return l.network(name, entry{Bridge: name}) }

func (l *Ledger) network(name string, e entry) error {
	if l == nil {
		return nil
	}
	if !ourNetwork.MatchString(name) {
		return fmt.Errorf("writing %q into the ledger: that is not the name of one of ours", name)
	}
	if err := l.write(e); err != nil {
		return fmt.Errorf("writing %s into the ledger: %w", name, err)
	}
	return nil
}

// Keep has Close leave the ledger where it is: something in it could not be ended,
// and a later sweep has to try again.
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
	if l.keep {
		err := l.file.Close()
		l.file = nil
		return err
	}
	err := os.Remove(l.path) // before the lock is given up
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	err = errors.Join(err, l.file.Close())
	l.file = nil
	_ = os.Remove(filepath.Dir(l.path)) // the last one takes the folder away; it stays if it is not empty
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
	_, err = l.file.Write(append(line, '\n')) // one write: a kill leaves no half line but for a full disk
	return err
}

// Folder is where this user's ledgers are, whether it is there or not.
func Folder() string { return filepath.Join(os.TempDir(), fmt.Sprintf("lockchaos-%d", os.Getuid())) }

// folder is Folder, made if need be. Everybody can write to the
// temporary folder, and a sweep believes what it reads: so the folder must be
// this user's alone.
func folder() (string, error) {
	path := Folder()
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || !private(info) {
		return "", fmt.Errorf("%s is not a folder of this user's alone: remove it, or set TMPDIR to another place", path)
	}
	return path, nil
}

// removable says whether a sweep may remove path: the last guard between a
// spoilt ledger and somebody's files.
func removable(path string) bool {
	rel, err := filepath.Rel(os.TempDir(), path)
	return err == nil && filepath.IsAbs(path) && filepath.Clean(path) == path &&
		rel != "." && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// bootID names this boot of the machine, empty where there is no such name.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
