package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// How often nodes are looked at, and how much of it is kept when nothing
// happens in a run that is longer than keepAll.
const (
	sampleEvery = 8 * time.Millisecond
	keepEvery   = 100 * time.Millisecond // a sample like the one before is kept so often
	keepAll     = time.Minute
	keepAround  = 2 * time.Second // after an event of the nemesis every sample is kept
)

// witness looks at every node all through a run and writes down what it saw.
type witness struct {
	cluster  cluster.Cluster
	sampler  cluster.Witness
	keys     *activeKeys
	clock    func() time.Duration
	sampling Sampling
	changed  func(old, new history.Sample) // called when a node's role or reachability changed

	mu        sync.Mutex
	out       io.Writer     // nil: nobody reads what it sees, only what changed
	keepUntil time.Duration // until when everything is kept
	err       error
	latest    map[string]history.Sample // the last one of each
	reported  map[string]history.Sample // the last one of each that changed something
	misses    map[string]int            // samples of each in a row that were not answered
}

func newWitness(c cluster.Cluster, keys *activeKeys, w io.Writer, clock func() time.Duration, how Sampling) (*witness, error) {
	look, ok := c.(cluster.Witness)
	if !ok {
		return nil, fmt.Errorf("this backend cannot look at its nodes")
	}
	return &witness{
		cluster: c, sampler: look, keys: keys, clock: clock, out: w,
		latest: map[string]history.Sample{}, reported: map[string]history.Sample{}, misses: map[string]int{},
		changed: func(_, _ history.Sample) {}, sampling: how,
	}, nil
}

// run looks at all nodes until ctx ends. Each has a goroutine of its own: one
// that does not answer must not hide the others.
func (w *witness) run(ctx context.Context, t Time) {
	var wg sync.WaitGroup
	for i, n := range w.cluster.Nodes() {
		mine := t.Actor(ctx, fmt.Sprintf("witness-%d", i))
		wg.Go(func() { w.watch(mine, n.Name, t) })
	}
	wg.Wait()
}

func (w *witness) watch(ctx context.Context, node string, t Time) {
	tick := time.NewTicker(w.sampling.Every)
	defer tick.Stop()
	var kept time.Duration
	for {
		t.Turn(ctx)
		asked := w.clock()
		s := w.sampler.Sample(ctx, node, w.keys.at(asked))
		if ctx.Err() != nil {
			return
		}
		s.Node, s.Sent, s.Time = node, asked, w.clock()
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

// take writes s if it is news or due, and says whether it did.
func (w *witness) add(s history.Sample, due bool) bool {
	w.mu.Lock()
	old, known := w.latest[s.Node]
	w.latest[s.Node] = s
	news := !known || differs(old, s)
	write := news || due || !w.sampling.Thin || s.Time < w.keepUntil
	if write {
		w.write(s)
	}
	told, changed := w.change(s)
	w.mu.Unlock()
	if changed {
		w.changed(told, s)
	}
	return write
}

// silentAfter is how many samples in a row have to be missing before a node is
// called silent: one late answer on a busy machine is not an event.
const silentAfter = 3

// turn says whether s changes what was last told of its node, and what that was.
func (w *witness) change(s history.Sample) (told history.Sample, changed bool) {
	told, known := w.reported[s.Node]
	if s.Up {
		w.misses[s.Node] = 0
	} else if w.misses[s.Node]++; known && told.Up && w.misses[s.Node] < silentAfter {
		return told, false
	}
	changed = known && (told.Role != s.Role || told.Up != s.Up)
	if changed || !known {
		w.reported[s.Node] = s
	}
	return told, changed
}

func (w *witness) write(s history.Sample) {
	if w.out == nil {
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

// stir keeps every sample for a while, because something is going on.
func (w *witness) noteFault(now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepUntil = now + keepAround
}

// differs says whether b tells anything that a did not, apart from the passing of time.
func differs(a, b history.Sample) bool {
	if a.Up != b.Up || a.Role != b.Role || a.Replicas != b.Replicas || len(a.Keys) != len(b.Keys) {
		return true
	}
	for key, x := range a.Keys { // order does not matter: any difference counts
		if y, ok := b.Keys[key]; !ok || x.Owner != y.Owner || x.Count != y.Count || y.TTL > x.TTL {
			return true
		}
	}
	return false
}
