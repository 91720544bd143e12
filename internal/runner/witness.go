package runner

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
)

// Which samples are recorded, see [backend.Sampling].
const (
	keepEvery  = 100 * time.Millisecond // at least, even if nothing changes
	clockStep  = 5 * time.Millisecond   // by which the rest of a lease may differ from the time that has passed
	keepAround = 2 * time.Second        // all samples, after an event of the nemesis
)

// witness samples every node throughout a run and records the samples.
type witness struct {
	cluster  cluster.Cluster
	sampler  cluster.Witness
	keys     *activeKeys
	clock    func() time.Duration
	sampling backend.Sampling
	changed  func(before, now history.Sample) // called when the role or reachability of a node has changed
	sampled  func(history.Sample)             // called with each sample

	mu        sync.Mutex
	out       io.Writer        // nil: samples are kept in memory
	keepUntil time.Duration    // record all samples until then
	kept      []history.Sample // the recorded samples, if there is no file
	err       error
	latest    map[string]history.Sample // by node
	reported  map[string]history.Sample // by node, the last one given to changed
	missed    map[string]int            // by node, samples in a row without a reply
	silent    map[string]time.Duration  // by node, when the first of these was sent
	requests  requestLog
}

func newWitness(
	c cluster.Cluster, keys *activeKeys, w io.Writer, clock func() time.Duration, how backend.Sampling, perInstance int,
) (*witness, error) {
	sampler, ok := c.(cluster.Witness)
	if !ok {
		return nil, errors.New("this backend cannot sample nodes")
	}
	return &witness{
		cluster: c, sampler: sampler, keys: keys, clock: clock, out: w, sampling: how,
		latest: map[string]history.Sample{}, reported: map[string]history.Sample{}, missed: map[string]int{},
		silent:   map[string]time.Duration{},
		requests: requestLog{perInstance: perInstance, nodes: map[string]*nodeRequests{}},
		changed:  func(_, _ history.Sample) {}, sampled: func(history.Sample) {},
	}, nil
}

// run samples all nodes until ctx ends, each in a goroutine of its own: a node that does not reply must not delay the
// others.
func (w *witness) run(ctx context.Context, t backend.Time) {
	var wg sync.WaitGroup
	for i, n := range w.cluster.Nodes() {
		ctx := t.Actor(ctx, fmt.Sprintf("witness-%d", i))
		wg.Go(func() { w.watch(ctx, n.Name, t) })
	}
	wg.Wait()
}

func (w *witness) watch(ctx context.Context, node string, t backend.Time) {
	tick := time.NewTicker(w.sampling.Every)
	defer tick.Stop()
	var kept time.Duration
	for {
		t.Turn(ctx)
		sent := w.clock()
		s := w.sampler.Sample(ctx, node, w.keys.at(sent))
		if ctx.Err() != nil {
			return
		}
		s.Node, s.Sent, s.Time = node, sent, w.clock()
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
func (w *witness) add(s history.Sample, due bool) (recorded bool) {
	w.mu.Lock()
	before, known := w.latest[s.Node]
	w.latest[s.Node] = s
	recorded = !known || differs(before, s) || due || !w.sampling.Thin || s.Time < w.keepUntil
	if recorded {
		w.write(s)
	}
	reported, changed := w.change(s)
	w.mu.Unlock()
	w.sampled(s)
	if changed {
		w.changed(reported, s)
	}
	return recorded
}

// silentAfter is how many samples in a row must be missed before a node counts as silent: one late reply on a busy
// machine is not an event.
const silentAfter = 3

// change compares s with the last sample of its node that was reported. A node counts as up until it was sampled.
func (w *witness) change(s history.Sample) (reported history.Sample, changed bool) {
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

// silentFor is how long a node that does not reply has not.
func (w *witness) silentFor(node string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock() - w.silent[node]
}

func (w *witness) write(s history.Sample) {
	s.Received = w.requests.changes(s)
	if w.out == nil {
		w.kept = append(w.kept, s)
		return
	}
	line, err := json.Marshal(s)
	if err == nil {
		_, err = w.out.Write(append(line, '\n'))
	}
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("writing the witness file: %w", err)
	}
}

// noteFault records all samples for a while.
func (w *witness) noteFault(now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepUntil = now + keepAround
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
