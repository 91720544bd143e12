// Package witness samples the servers of a run, and records the samples that show a change.
//
// Read [Witness] first.
package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// Which samples are recorded, see [backend.Sampling].
const (
	keepEvery  = 100 * time.Millisecond // at least, even if nothing changes
	clockStep  = 5 * time.Millisecond   // by which the rest of a lease may differ from the time that has passed
	keepAround = 2 * time.Second        // all samples, after an event of the nemesis
)

// Config are the settings of a witness.
type Config struct {
	Cluster cluster.Cluster
	Params  workload.Params      // of the clients, see [Witness.Noticed]
	Clock   func() time.Duration // of the history
	How     backend.Sampling
	Out     io.Writer                        // of the witness file; nil: samples are kept in memory
	Changed func(before, now history.Sample) // called when the role or reachability of a node has changed
	Sampled func(history.Sample)             // called with each sample
}

// Witness samples every node throughout a run and records the samples. Its methods may be called concurrently, except
// Err and Kept, which are valid after Run has returned.
type Witness struct {
	Config
	sampler cluster.Witness
	keys    *activeKeys

	mu        sync.Mutex
	keepUntil time.Duration    // record all samples until then
	kept      []history.Sample // the recorded samples, if there is no file
	err       error
	latest    map[string]history.Sample // by node
	reported  map[string]history.Sample // by node, the last one given to Changed
	missed    map[string]int            // by node, samples in a row without a reply
	silent    map[string]time.Duration  // by node, when the first of these was sent
	requests  requestLog
}

// New returns a witness of a cluster; an error if its nodes cannot be sampled.
func New(c Config) (*Witness, error) {
	sampler, ok := c.Cluster.(cluster.Witness)
	if !ok {
		return nil, errors.New("this backend cannot sample nodes")
	}
	return &Witness{
		Config: c, sampler: sampler, keys: newActiveKeys(c.Params),
		latest: map[string]history.Sample{}, reported: map[string]history.Sample{}, missed: map[string]int{},
		silent:   map[string]time.Duration{},
		requests: requestLog{perInstance: c.Params.PerInstance, nodes: map[string]*nodeRequests{}},
	}, nil
}

// Sample samples these keys of one node, and records nothing.
func (w *Witness) Sample(ctx context.Context, node string, keys []string) history.Sample {
	return w.sampler.Sample(ctx, node, keys)
}

// Noticed takes the next event of the history: keys that clients use are sampled, and after an event of the nemesis all
// samples are recorded for a while.
func (w *Witness) Noticed(e *history.Event) {
	w.keys.add(e.Key, e.Time)
	if e.Process != history.Nemesis {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepUntil = e.Time + keepAround
}

// Err is the error that kept samples from being recorded.
func (w *Witness) Err() error { return w.err }

// Kept are the recorded samples; nil if they are in a file.
func (w *Witness) Kept() []history.Sample { return w.kept }

// Run samples all nodes until ctx ends, each in a goroutine of its own: a node that does not reply must not delay the
// others.
func (w *Witness) Run(ctx context.Context, t backend.Time) {
	var wg sync.WaitGroup
	for i, n := range w.Cluster.Nodes() {
		ctx := t.Actor(ctx, fmt.Sprintf("witness-%d", i))
		wg.Go(func() { w.watch(ctx, n.Name, t) })
	}
	wg.Wait()
}

func (w *Witness) watch(ctx context.Context, node string, t backend.Time) {
	tick := time.NewTicker(w.How.Every)
	defer tick.Stop()
	var kept time.Duration
	for {
		t.Turn(ctx)
		sent := w.Clock()
		s := w.sampler.Sample(ctx, node, w.keys.at(sent))
		if ctx.Err() != nil {
			return
		}
		s.Node, s.Sent, s.Time = node, sent, w.Clock()
		if w.add(s, s.Time-kept >= keepEvery) {
			kept = s.Time
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// add records s if it shows a change or is due, and reports whether it did.
func (w *Witness) add(s history.Sample, due bool) (recorded bool) {
	w.mu.Lock()
	before, known := w.latest[s.Node]
	w.latest[s.Node] = s
	recorded = !known || differs(before, s) || due || !w.How.Thin || s.Time < w.keepUntil
	if recorded {
		w.write(s)
	}
	reported, changed := w.change(s)
	w.mu.Unlock()
	w.Sampled(s)
	if changed {
		w.Changed(reported, s)
	}
	return recorded
}

// silentAfter is how many samples in a row must be missed before a node counts as silent: one late reply on a busy
// machine is not an event.
const silentAfter = 3

// change compares s with the last sample of its node that was reported. A node counts as up until it was sampled.
func (w *Witness) change(s history.Sample) (reported history.Sample, changed bool) {
	reported, known := w.reported[s.Node]
	if !known {
		reported = history.Sample{Node: s.Node, Up: true, Role: s.Role}
	}
	if s.Up {
		w.missed[s.Node] = 0
	} else {
		if w.missed[s.Node]++; w.missed[s.Node] == 1 {
			w.silent[s.Node] = s.Sent
		}
		if reported.Up && w.missed[s.Node] < silentAfter {
			return reported, false
		}
	}
	changed = reported.Role != s.Role || reported.Up != s.Up
	if changed || !known {
		w.reported[s.Node] = s
	}
	return reported, changed
}

// SilentFor is the time for which a node has not replied.
func (w *Witness) SilentFor(node string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Clock() - w.silent[node]
}

func (w *Witness) write(s history.Sample) {
	s.Received = w.requests.changes(s)
	if w.Out == nil {
		w.kept = append(w.kept, s)
		return
	}
	line, err := json.Marshal(s)
	if err == nil {
		_, err = w.Out.Write(append(line, '\n'))
	}
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("writing the witness file: %w", err)
	}
}

// differs reports whether anything but the passing of time distinguishes b from a.
func differs(a, b history.Sample) bool {
	if a.Up != b.Up || a.Role != b.Role || a.Replicas != b.Replicas || len(a.Keys) != len(b.Keys) {
		return true
	}
	for key, x := range a.Keys { // in any order: one difference is enough
		y, ok := b.Keys[key]
		if !ok || x.Owner != y.Owner || !slices.Equal(x.Owners, y.Owners) || x.Mode != y.Mode || x.Count != y.Count ||
			x.Permits != y.Permits {
			return true
		}
		if y.TTL > x.TTL || y.TTL >= 0 && y.TTL < x.TTL-(b.Time-a.Sent)-clockStep {
			return true
		}
	}
	return false
}
