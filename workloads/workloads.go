// Package workloads decides what clients do, one file for each workload; its Go API is not a promise. A workload sends
// operations to a client, records both ends of each, and uses a guarded resource in its critical sections. It does not
// know the faults.
//
// Read [Spec] first, then [Session], through which all operations reach a client, so that the history has them all.
package workloads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Params are a scenario's workload section. The zero value of a field stands for its default.
type Params struct {
	Kind    string        `yaml:"kind,omitempty"`    // name in the catalog; default mutex
	Clients int           `yaml:"clients,omitempty"` // default 5
	Keys    int           `yaml:"keys,omitempty"`    // default 1
	Hold    time.Duration `yaml:"hold,omitempty"`    // length of the critical section; default 100 ms
	Jitter  time.Duration `yaml:"jitter,omitempty"`  // random time, up to this, added to each Hold and Think
	Think   time.Duration `yaml:"think,omitempty"`   // pause after a release
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
	// Sequences are names of sequences of workload mixed, separated by commas: those that clients execute, or, after "all
	// but", do not execute. "": all, but those that are about shared lock objects only if clients share them. Of several
	// lists with semicolons between them, client i has list i modulo their number.
	Sequences string `yaml:"sequences,omitempty"`
	// Tagged has the name of every key end with the same hash tag, so that they are in one slot of a Redis Cluster.
	Tagged bool `yaml:"tagged,omitempty"`
	// SetUp: clients of workload mixed give each semaphore its size before anything else.
	SetUp bool `yaml:"set_up,omitempty"`
	// Prefix begins the name of every key, on servers that others use too. It has no braces.
	Prefix string `yaml:"-"`
}

// Bounds of a workload on one machine.
const (
	MaxClients  = 1000
	maxKeys     = 10_000
	maxPermits  = 10_000         // of one key
	MaxDuration = 24 * time.Hour // of each of its durations
)

// Defaults is p with the default in place of every zero value that stands for one.
func (p Params) Defaults() Params {
	p.Kind = cmp.Or(p.Kind, mutexSpec.Name)
	p.Clients = cmp.Or(p.Clients, 5)
	p.Keys = cmp.Or(p.Keys, 1)
	p.Hold = cmp.Or(p.Hold, 100*time.Millisecond)
	p.Wait = cmp.Or(p.Wait, 10*time.Second)
	if p.Kind == semaphoreSpec.Name || p.anyLock() {
		p.Permits = cmp.Or(p.Permits, 3)
	}
	return p
}

// Validate reports what is out of bounds in p, after Defaults.
func (p Params) Validate() error {
	if _, err := Lookup(p.Kind); err != nil {
		return err
	}
	if p.Clients < 1 || p.Clients > MaxClients {
		return outOfBounds("clients", p.Clients, MaxClients)
	}
	if p.Keys < 1 || p.Keys > maxKeys {
		return outOfBounds("keys", p.Keys, maxKeys)
	}
	if err := errors.Join(p.validatePermits(), p.validateWriters(), p.validateSequences()); err != nil {
		return err
	}
	if min(p.Hold, p.Jitter, p.Think, p.Lease, p.Wait, p.Ramp) < 0 {
		return fmt.Errorf("workload: durations must not be negative")
	}
	if longest := max(p.Hold, p.Jitter, p.Think, p.Lease, p.Wait, p.Ramp); longest > MaxDuration {
		return fmt.Errorf("workload: %v is longer than the limit of %v", longest, MaxDuration)
	}
	if p.Lease > 0 && p.Lease < time.Millisecond {
		return fmt.Errorf("workload: a lease of %v is shorter than a millisecond, the resolution of Redis", p.Lease)
	}
	return nil
}

// anyLock reports whether the workload is one for locks of every kind.
func (p Params) anyLock() bool { return p.Kind == mixedSpec.Name || p.Kind == waitersSpec.Name }

func (p Params) validatePermits() error {
	switch {
	case p.anyLock() && (p.Permits < 1 || p.Permits > maxPermits):
		return outOfBounds("permits", p.Permits, maxPermits)
	case p.anyLock():
		return nil
	case p.Kind != semaphoreSpec.Name && p.Permits != 0:
		return fmt.Errorf("workload: %s has no permits; only %s, %s and %s have", p.Kind, semaphoreSpec.Name,
			mixedSpec.Name, waitersSpec.Name)
	case p.Kind != semaphoreSpec.Name:
		return nil
	case p.Permits < 1 || p.Permits > maxPermits:
		return outOfBounds("permits", p.Permits, maxPermits)
	case p.Fenced:
		return fmt.Errorf("workload: %s has no fenced resource, because several clients may use it at once", p.Kind)
	}
	return nil
}

func (p Params) validateWriters() error {
	switch {
	case p.Kind != readersWriterSpec.Name && p.Writers != 0:
		return fmt.Errorf("workload: %s has no clients that only write; only %s has", p.Kind, readersWriterSpec.Name)
	case p.Writers < 0 || p.Writers > p.Clients:
		return outOfBounds("writers", p.Writers, p.Clients)
	}
	return nil
}

func outOfBounds(what string, n, most int) error {
	return fmt.Errorf("workload: %s must be between 1 and %s, not %d", what, format.Number(most), n)
}

// KeyNames are the keys that p's workload locks: those that all clients use and, in some workloads, one for each.
func (p Params) KeyNames() []string {
	keys := p.sharedKeys()
	if p.Kind != mixedSpec.Name && p.Kind != latchSpec.Name {
		return keys
	}
	for i := range p.Clients {
		keys = append(keys, p.ownKey(i))
	}
	return keys
}

// ownKey is the key of client i alone.
func (p Params) ownKey(i int) string { return p.key(fmt.Sprintf("own-%d", i)) }

// key is the name of the key that a workload calls name.
func (p Params) key(name string) string {
	if p.Tagged {
		name += "{shop}"
	}
	return p.Prefix + name
}

// sharedKeys are the keys that all clients use. A single key is named orders.
func (p Params) sharedKeys() []string {
	if p.Keys == 1 {
		return []string{p.key("orders")}
	}
	keys := make([]string, p.Keys)
	for i := range keys {
		keys[i] = p.key(fmt.Sprintf("orders-%d", i))
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

// Begins waits until client i may start (Params.Ramp); false: the run ended before.
func (p Params) Begins(ctx context.Context, stop <-chan struct{}, i int) bool {
	if p.Ramp > 0 && p.Clients > 1 {
		pause(ctx, stop, (p.Ramp * time.Duration(i) / time.Duration(p.Clients-1)).Truncate(grain))
	}
	return running(ctx, stop)
}

// Env is what one client of a workload works with.
type Env struct {
	Params  Params
	Session *Session
	Guard   *Guard
	Rand    *rand.Rand          // of this client alone, from the run's seed
	Seed    uint64              // of the run: what all clients draw from it is the same for all
	Until   time.Time           // end of the run, which bounds acquire timeouts
	Can     client.Capabilities // of the lock
}

// wait is the acquire timeout now, at least a millisecond. It is a whole number of them: in a simulation, the waits of
// all clients would otherwise end at one instant, the end of the run.
func (e Env) wait() time.Duration {
	return max(grain, min(e.Params.Wait, time.Until(e.Until)).Truncate(grain))
}

// Spec is a row of the catalog.
type Spec struct {
	Name   string
	Doc    string // one sentence
	Source string
	Needs  client.Capabilities // without them the workload is not run
	Uses   client.Capabilities // what it exercises if the lock has it
	// Client runs one client until stop is closed, and then completes its hold. ctx ends only if the run is abandoned.
	Client func(ctx context.Context, stop <-chan struct{}, e Env)
}

// Recorder is the part of history.Recorder that workloads use.
type Recorder interface {
	Invoke(p history.Process, f, key string, v *history.Value) history.Event
	Complete(inv history.Event, t history.Type, v *history.Value, e *history.Error) history.Event
	Note(p history.Process, f, key string, v *history.Value) history.Event
	Touch(p history.Process, key string, v *history.Value, accepted bool) history.Event
}
