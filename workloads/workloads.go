// Package workloads decides what clients do: one file for each workload. A
// workload asks, records every question and answer, and spends its critical
// sections at a guarded resource; it knows no faults, and it judges nothing.
//
// Read [Spec] first, then [Session]: the one way in which an operation reaches
// a client, so that none can be forgotten in the history.
package workloads

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// Params are a scenario's workload section. The zero value of a field stands for its default.
type Params struct {
	Kind    string        `yaml:"kind,omitempty"`    // name in the catalogue; default mutex
	Clients int           `yaml:"clients,omitempty"` // default 5
	Keys    int           `yaml:"keys,omitempty"`    // default 1
	Hold    time.Duration `yaml:"hold,omitempty"`    // length of the critical section; default 100 ms
	Jitter  time.Duration `yaml:"jitter,omitempty"`  // a random extra, up to this, for each Hold and Think
	Think   time.Duration `yaml:"think,omitempty"`   // pause after a release
	Lease   time.Duration `yaml:"lease,omitempty"`   // 0: the lock renews by itself
	Wait    time.Duration `yaml:"wait,omitempty"`    // acquire timeout; default 10 s
	Ramp    time.Duration `yaml:"ramp,omitempty"`    // spreads the start of the clients; 0: all start at once
	Fenced  bool          `yaml:"fenced,omitempty"`  // the guarded resource rejects tokens older than the newest it has seen
	Permits int           `yaml:"permits,omitempty"` // of each key, semaphore only; default 3
	// PerProcess is the number of clients per process where clients are processes; default 1. Faults that pause or
	// crash a client act on its whole process and therefore need 1.
	PerProcess int `yaml:"per_process,omitempty"`
}

// Defaults is p with the default in place of every zero value that stands for one.
func (p Params) Defaults() Params {
	p.Kind = cmp.Or(p.Kind, mutexSpec.Name)
	p.Clients = cmp.Or(p.Clients, 5)
	p.Keys = cmp.Or(p.Keys, 1)
	p.Hold = cmp.Or(p.Hold, 100*time.Millisecond)
	p.Wait = cmp.Or(p.Wait, 10*time.Second)
	if p.Kind == semaphoreSpec.Name {
		p.Permits = cmp.Or(p.Permits, 3)
	}
	return p
}

// Validate reports what is out of bounds in p, after Defaults.
func (p Params) Validate() error {
	if _, err := Lookup(p.Kind); err != nil {
		return err
	}
	if p.Clients < 1 || p.Clients > MaxClients || p.Keys < 1 || p.Keys > MaxKeys {
		return fmt.Errorf("workload: %d clients on %d keys: clients go from 1 to %d, keys from 1 to %d",
			p.Clients, p.Keys, MaxClients, MaxKeys)
	}
	if err := p.validatePermits(); err != nil {
		return err
	}
	if min(p.Hold, p.Jitter, p.Think, p.Lease, p.Wait, p.Ramp) < 0 {
		return fmt.Errorf("workload: no duration may be negative")
	}
	if longest := max(p.Hold, p.Jitter, p.Think, p.Lease, p.Wait, p.Ramp); longest > MaxDuration {
		return fmt.Errorf("workload: %v is too long, nothing may last longer than %v", longest, MaxDuration)
	}
	if p.Lease > 0 && p.Lease < time.Millisecond {
		return fmt.Errorf("workload: a lease of %v is less than the millisecond that Redis counts in", p.Lease)
	}
	return nil
}

func (p Params) validatePermits() error {
	if p.Kind != semaphoreSpec.Name {
		if p.Permits != 0 {
			return fmt.Errorf("workload: %d permits: only the workload %s has permits", p.Permits, semaphoreSpec.Name)
		}
		return nil
	}
	if p.Permits < 1 || p.Permits > MaxPermits {
		return fmt.Errorf("workload: %d permits: a key has from 1 to %d", p.Permits, MaxPermits)
	}
	if p.Fenced {
		return fmt.Errorf("workload: the workload %s has no fenced resource, for several may be at it at once", p.Kind)
	}
	return nil
}

// Bounds of a workload on one machine.
const (
	MaxClients  = 1000
	MaxKeys     = 10_000
	MaxPermits  = 10_000         // of one key
	MaxDuration = 24 * time.Hour // of each of its durations
)

// KeyNames are the keys that p's workload locks. One key is called orders.
func (p Params) KeyNames() []string {
	if p.Keys == 1 {
		return []string{"orders"}
	}
	keys := make([]string, p.Keys)
	for i := range keys {
		keys[i] = fmt.Sprintf("orders-%d", i)
	}
	return keys
}

// Env is what one client of a workload works with.
type Env struct {
	Params  Params
	Session *Session
	Guard   *Guard
	Rand    *rand.Rand // of this client alone, from the run's seed
	Until   time.Time  // when the run stops: nobody waits for a lock longer than that
}

// wait is how long a client may wait for the lock now, at least a millisecond.
func (e Env) wait() time.Duration {
	return max(time.Millisecond, min(e.Params.Wait, time.Until(e.Until)))
}

// Begins waits for the turn of client i under a ramp; false: the run ended before.
func (p Params) Begins(ctx context.Context, stop <-chan struct{}, i int) bool {
	if p.Ramp > 0 && p.Clients > 1 {
		pause(ctx, stop, (p.Ramp * time.Duration(i) / time.Duration(p.Clients-1)).Truncate(grain))
	}
	return going(ctx, stop)
}

// Spec is a row of the catalogue.
type Spec struct {
	Name   string
	Doc    string // one sentence
	Source string
	// Client runs one client until stop is closed. It finishes the hold that it
	// is in; ctx ends only when the run is abandoned.
	Client func(ctx context.Context, stop <-chan struct{}, e Env)
}

// Recorder is the part of history.Recorder that workloads use.
type Recorder interface {
	Invoke(p history.Process, f, key string, v *history.Value) history.Event
	Complete(inv history.Event, t history.Type, v *history.Value, e *history.Error) history.Event
	Note(p history.Process, f, key string, v *history.Value) history.Event
	Touch(p history.Process, key string, v *history.Value, accepted bool) history.Event
}
