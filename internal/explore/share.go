package explore

import (
	"context"
	"maps"
	"sync"
	"time"
)

// shareEvery is how often a shard records its progress and reads the others'. A killed shard loses the seeds of at most
// that time.
const shareEvery = 5 * time.Second

// share reads the states that other shards have reached, now and repeatedly, and records how far this one has come.
// stop ends that with a last record.
func (e *explorer) share(ctx context.Context) (stop func() error, err error) {
	if e.Corpus == nil {
		return func() error { return nil }, nil
	}
	if err := e.learn(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(shareEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				e.setError(ctx, e.learn())
				e.setError(ctx, e.record())
			case <-ended:
				return
			}
		}
	})
	return func() error {
		close(ended)
		wg.Wait()
		return e.record()
	}, nil
}

// learn reads the states that other shards have reached: a run that reaches one of them is not varied again.
func (e *explorer) learn() error {
	e.mu.Lock()
	known := maps.Clone(e.known)
	e.mu.Unlock()
	states, err := e.Corpus.newStates(known)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range states {
		e.known[s] = true
	}
	return err
}

func (e *explorer) record() error {
	e.mu.Lock()
	r := e.Shard // as it was before this exploration
	r.Covered, r.Updated = e.report.Covered, time.Now().UTC()
	r.Runs, r.Unsafe = r.Runs+e.report.Runs, r.Unsafe+e.report.Unsafe
	if r.Kinds = maps.Clone(r.Kinds); r.Kinds == nil {
		r.Kinds = map[string]int{}
	}
	for _, f := range e.report.Findings {
		r.Kinds[f.Kind.String()] += f.Runs
	}
	e.mu.Unlock()
	return e.Corpus.Record(r)
}

// addStates adds the states of a run that are new to the corpus.
func (e *explorer) addStates(ctx context.Context, j Job, r Result) {
	if e.Corpus == nil {
		return
	}
	for _, s := range r.States {
		e.mu.Lock()
		known := e.known[s]
		e.known[s] = true
		e.mu.Unlock()
		if !known {
			e.setError(ctx, e.Corpus.AddState(s, j))
		}
	}
}
