package client

import (
	"slices"

	"github.com/lockchaos/lockchaos/promise"
)

// Spec describes a lock under test: its promises, and how to open it in this program.
type Spec struct {
	Name       string
	Doc        string   // the kind of the lock, in one sentence
	Source     string   // where the lock is described
	Topologies []string // kinds it runs on; nil: all
	Can        promise.Set
	// CanWith returns the promises of the lock with options that CheckOptions accepts. nil: Can, with all options.
	CanWith func(options map[string]string) promise.Set

	// Command is the command line of a client that is a program of its own; nil: the lock is part of this program.
	Command []string

	// PersistentKeys returns the keys that the lock on key leaves at the servers without a TTL, or with one of more than
	// two minutes beyond its lease, such as the counter of its tokens. nil: none.
	PersistentKeys func(key string) []string
	// ExpiringKeys returns the persistent keys that have a TTL, however long. nil: any of them may have none.
	ExpiringKeys func(key string) []string

	// Options are the options that generated scenarios draw; nil: none.
	Options []Option
	// CheckOptions refuses options of a scenario that Open would refuse. nil: they are not known before.
	CheckOptions func(options map[string]string) error
	// Open connects to the servers. The lock calls notify for every hold that it loses or renews.
	Open func(s Setup, notify func(Reply)) (Locker, error)
	// Definite reports whether err proves that the operation did not happen and never will.
	Definite func(err error) bool
	// Undone reports whether an acquire that failed with err, which is definite, may have held the lock before it failed.
	// nil: no acquire has.
	Undone func(err error) bool
	// Code returns a short stable word for err.
	Code func(err error) string
}

// Option is an option of a lock, with values for tests.
type Option struct {
	Name       string
	Values     []string
	Share      int      // percentage of the scenarios that set it
	Topologies []string // kinds on which it has an effect; nil: all
}

// Lookup finds a lock by its name. Its error says that there is none.
type Lookup func(name string) (Spec, error)

// Runs reports whether the lock runs on that kind of topology.
func (s Spec) Runs(kind string) bool {
	return s.Topologies == nil || slices.Contains(s.Topologies, kind)
}

// ExecPrefix starts the name of a lock whose client is a program of the
// user, split at spaces: exec:python3 client.py. It may run on any topology.
const ExecPrefix = "exec:"

// stated returns the promises of the lock with these options.
func (s Spec) stated(options map[string]string) promise.Set {
	if s.CanWith == nil {
		return s.Can
	}
	return s.CanWith(options)
}
