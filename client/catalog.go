package client

import (
	"fmt"
	"slices"
	"strings"
)

// Spec is a row of the catalogue of locks: a native client for one lock.
type Spec struct {
	Name       string
	Doc        string   // one sentence: what kind of lock it is
	Source     string   // where the lock is described
	Topologies []string // kinds it runs on; nil: all
	Fenced     bool     // its grants carry a fencing token
	Reentrant  bool     // its owner may acquire it again
	Permits    bool     // several may hold it at once, as many as the workload says that it has permits

	// PersistentKeys are the keys that the lock on a key leaves at the servers for good,
	// as documented, such as the counter of its tokens. nil: none.
	PersistentKeys func(key string) []string

	// Open connects to the cluster. It tells notify of lost and renewed holds.
	Open func(s Setup, notify func(Reply)) (Locker, error)
	// Definite says that err proves that the operation did not happen and never will.
	Definite func(err error) bool
	// Code is a short stable word for err.
	Code func(err error) string
}

// Catalog is every lock that has a native client, in the order in which people read it.
func Catalog() []Spec {
	return slices.Concat([]Spec{reentrantSpec, redlockSpec}, kindSpecs(), historicSpecs())
}

// Lookup finds a row by name.
func Lookup(name string) (Spec, error) {
	if command := Command(name); len(command) > 0 {
		return Spec{Name: name, Doc: "a client of your own: " + command[0]}, nil
	}
	for _, row := range Catalog() {
		if row.Name == name {
			return row, nil
		}
	}
	return Spec{}, fmt.Errorf("no lock is called %q", name)
}

// Runs says whether the lock runs on that kind of topology.
func (s Spec) Runs(kind string) bool {
	return s.Topologies == nil || slices.Contains(s.Topologies, kind)
}

// ExecPrefix begins the name of a lock whose client is a program of the
// user's: exec:python3 client.py. It may run on any topology.
const ExecPrefix = "exec:"

// Command is the program behind a lock whose name begins with [ExecPrefix],
// split at spaces; nil for every other lock.
func Command(lock string) []string {
	line, ok := strings.CutPrefix(lock, ExecPrefix)
	if !ok {
		return nil
	}
	return strings.Fields(line)
}
