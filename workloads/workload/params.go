package workload

import (
	"cmp"
	"fmt"
	"time"
)

// Kinds of workload: names in the catalog.
const (
	Mutex         = "mutex"
	ReadersWriter = "readers-writer"
	Semaphore     = "semaphore"
	Mixed         = "mixed"
	Latch         = "latch"
	Waiters       = "waiters"
	Leader        = "leader"
)

// Params are a scenario's workload section. The zero value of a field stands for its default.
type Params struct {
	Kind    string        `yaml:"kind,omitempty"`    // name in the catalog; default mutex
	Clients int           `yaml:"clients,omitempty"` // default 5
	Keys    int           `yaml:"keys,omitempty"`    // default 1
	Hold    time.Duration `yaml:"hold,omitempty"`    // length of the critical section; default 100 ms
	Jitter  time.Duration `yaml:"jitter,omitempty"`  // random time, up to this, added to each Hold and Think
	Think   time.Duration `yaml:"think,omitempty"`   // pause after a release
	Term    time.Duration `yaml:"term,omitempty"`    // how long a leader leads; 0: to the end of the run
	Lease   time.Duration `yaml:"lease,omitempty"`   // 0: the lock renews its lease itself
	Wait    time.Duration `yaml:"wait,omitempty"`    // acquire timeout; default 10 s
	Ramp    time.Duration `yaml:"ramp,omitempty"`    // time over which the clients start; 0: all at once
	Fenced  bool          `yaml:"fenced,omitempty"`  // the guarded resource rejects tokens older than the newest it has seen
	Permits int           `yaml:"permits,omitempty"` // of each key, if the lock is a semaphore; default 3
	// Writers is how many clients, of workload readers-writer, only write; all others only read. 0: each client does both.
	Writers int `yaml:"writers,omitempty"`
	// PerProcess is the number of clients per process where clients are processes; default 1. Faults that pause or
	// crash a client act on its whole process and therefore need 1.
	PerProcess int `yaml:"per_process,omitempty"`
	// PerInstance is the number of clients that share one lock object and its connections, as the goroutines of a program
	// do; default 1. It divides PerProcess.
	PerInstance int `yaml:"per_instance,omitempty"`
	// Sequences selects the sequences of workload mixed that clients execute: a list of names with commas, or "all but"
	// and a list of the names to leave out. "" selects all; the sequences about shared lock objects only if PerInstance is
	// more than 1. Several lists with semicolons between them are dealt to the clients in turn: client i gets list i
	// modulo their number.
	Sequences string `yaml:"sequences,omitempty"`
	// Tagged has the name of every key end with the same hash tag, so that they are in one slot of a Redis Cluster.
	Tagged bool `yaml:"tagged,omitempty"`
	// SetUp: clients of workload mixed set the size of each semaphore before their first other operation.
	SetUp bool `yaml:"set_up,omitempty"`
	// Prefix begins the name of every key, on servers that others use too. It has no braces.
	Prefix string `yaml:"-"`
}

// Bounds of a workload on one machine.
const (
	MaxClients  = 1000
	MaxKeys     = 10_000
	MaxPermits  = 10_000         // of one key
	MaxDuration = 24 * time.Hour // of each of its durations
)

// Defaults is p with the default in place of every zero value that stands for one.
func (p Params) Defaults() Params {
	p.Kind = cmp.Or(p.Kind, Mutex)
	p.Clients = cmp.Or(p.Clients, 5)
	p.Keys = cmp.Or(p.Keys, 1)
	p.Hold = cmp.Or(p.Hold, 100*time.Millisecond)
	p.Wait = cmp.Or(p.Wait, 10*time.Second)
	if p.Kind == Semaphore || p.AnyLock() {
		p.Permits = cmp.Or(p.Permits, 3)
	}
	return p
}

// KeyNames are the keys that the workload locks: the keys that all clients share and, in some workloads, one key for
// each client alone.
func (p Params) KeyNames() []string {
	keys := p.SharedKeys()
	if !p.ownKeys() {
		return keys
	}
	for i := range p.Clients {
		keys = append(keys, p.ownKey(i))
	}
	return keys
}

// AnyLock reports whether the workload is one for locks of every kind.
func (p Params) AnyLock() bool { return p.Kind == Mixed || p.Kind == Waiters }

// ownKeys reports whether each client has a key that no other client uses.
func (p Params) ownKeys() bool { return p.Kind == Mixed || p.Kind == Latch }

// ownKey is the key of client i alone.
func (p Params) ownKey(i int) string { return p.key(fmt.Sprintf("own-%d", i)) }

// key is the name of a key at the servers, with the prefix and the hash tag of p.
func (p Params) key(name string) string {
	if p.Tagged {
		name += "{shop}"
	}
	return p.Prefix + name
}

// SharedKeys are the keys that all clients use. A single key is named orders, or leadership in workload leader.
func (p Params) SharedKeys() []string {
	name := "orders"
	if p.Kind == Leader {
		name = "leadership"
	}
	if p.Keys == 1 {
		return []string{p.key(name)}
	}
	keys := make([]string, p.Keys)
	for i := range keys {
		keys[i] = p.key(fmt.Sprintf("%s-%d", name, i))
	}
	return keys
}

// Instance is the name of the lock object that client i shares with others; "": it has its own.
func (p Params) Instance(i int) string {
	if p.PerInstance < 2 {
		return ""
	}
	return fmt.Sprint(i / p.PerInstance)
}
