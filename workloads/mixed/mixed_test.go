package mixed

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/promise"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/workloadtest"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// TestSequencesFitTheLock: a lock is asked only for operations that it states.
func TestSequencesFitTheLock(t *testing.T) {
	for _, row := range locks.Catalog() {
		if row.Can.Has(promise.Latch) {
			continue
		}
		for _, s := range sequencesFor(row.Can, workload.Params{PerInstance: 2}) {
			if missing := s.needs.Without(row.Can); missing != 0 {
				t.Errorf("%s: sequence %q needs %s", row.Name, s.name, missing)
			}
		}
		ops := opsOf(t, row.Can, 60)
		for op, needed := range map[string]promise.Set{history.Try: promise.Try, history.Renew: promise.Renew} {
			if slices.Contains(ops, op) != row.Can.Has(needed) {
				t.Errorf("%s: it was asked to %s: %v", row.Name, op, !row.Can.Has(needed))
			}
		}
	}
	for _, s := range sequences() {
		if !promise.All.Has(s.needs) {
			t.Errorf("sequence %q can never be run", s.name)
		}
	}
}

// opsOf are the operations that a client requests of a lock with these promises, in n sequences.
func opsOf(t *testing.T, can promise.Set, n int) (ops []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		e := workloadtest.Env(c, tape, 0, 2, 1)
		e.Params.Kind, e.Params.Keys, e.Params.Permits, e.Can = workload.Mixed, 2, 3, can
		run(t.Context(), workloadtest.StopAfter(c, 8*n), e)
		for _, r := range c.Requests {
			ops = append(ops, r.Op)
		}
		tape.History(t)
	})
	return ops
}

// TestMixedKeys: half of the operations are on the client's own key, which is among the keys of the run.
func TestMixedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		e := workloadtest.Env(c, tape, 1, 3, 7)
		e.Params.Kind, e.Params.Keys, e.Can = workload.Mixed, 2, promise.Try|promise.MultiKey
		run(t.Context(), workloadtest.StopAfter(c, 600), e)
		own, names := 0, e.Params.KeyNames()
		for _, r := range c.Requests {
			for _, key := range append(r.Keys, r.Key) {
				if !slices.Contains(names, key) || key == "own-0" || key == "own-2" {
					t.Fatalf("%+v: client 1 has keys %v", r, names)
				}
			}
			if r.Key == "own-1" {
				own++
			}
		}
		if share := float64(own) / float64(len(c.Requests)); share < 0.3 || share > 0.7 {
			t.Errorf("%d of %d requests are on the client's own key", own, len(c.Requests))
		}
	})
}

// TestSeveralKeysAreOneOperation: a request on several keys is recorded as one event per key, in one operation.
func TestSeveralKeysAreOneOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		c.Script = func(_ int, r client.Request) (*client.Reply, error) {
			if r.Op == history.Try {
				return &client.Reply{Type: "fail", Code: history.CodeHeld}, nil
			}
			return &client.Reply{Type: "ok", Token: 9, Count: 2}, nil
		}
		s := session.New(c, tape, 0, 1, client.MonotonicNow)
		h, _ := s.Acquire(t.Context(), client.Acquire{Key: "a", Keys: []string{"a", "b"}, Wait: time.Second})
		s.Try(t.Context(), client.Acquire{Key: "a", Keys: []string{"a", "b"}})
		s.Release(t.Context(), h)
		got := tape.History(t)
		if len(got.Spans) != 6 || len(c.Requests) != 3 {
			t.Fatalf("%d spans of %d requests", len(got.Spans), len(c.Requests))
		}
		for i, span := range got.Spans {
			if got.Keys[span.Key] != []string{"a", "b"}[i%2] || span.Part != (i%2 == 1) || span.Count != 0 || span.Busy {
				t.Errorf("span %d: %+v", i, span)
			}
		}
		if first, second := got.Spans[0], got.Spans[1]; first.Token != 9 || second.Token != 0 {
			t.Errorf("tokens %d and %d: the reply has that of the first key", first.Token, second.Token)
		}
	})
}

// TestMissingForSequences: named sequences need a lock that supports one of them.
func TestMissingForSequences(t *testing.T) {
	for _, c := range []struct {
		sequences string
		can, want promise.Set
	}{
		{"", 0, 0},
		{"several keys", promise.Reentrant, promise.MultiKey},
		{"several keys", promise.MultiKey, 0},
		{"several keys, plain", 0, 0},
		{"several keys; plain", 0, 0},
		{"nested, several keys", promise.MultiKey, 0},
		{"nested; several keys", 0, promise.Reentrant},
		{allBut + "several keys", 0, 0},
	} {
		p := workload.Params{Kind: workload.Mixed, Sequences: c.sequences}.Defaults()
		if got := missingForSequences(p, c.can); got != c.want {
			t.Errorf("sequences %q of a lock that promises %v: missing %v, want %v", c.sequences, c.can, got, c.want)
		}
	}
}

// TestNamedSequences: a client executes the sequences that the parameters name, or the common use if the lock can do
// none.
func TestNamedSequences(t *testing.T) {
	p := workload.Params{Kind: workload.Mixed, Sequences: "nested, tries"}.Defaults()
	for _, c := range []struct {
		can  promise.Set
		want string
	}{
		{promise.Reentrant | promise.Try, "[nested tries]"},
		{promise.Reentrant, "[nested]"},
		{0, "[plain]"},
	} {
		var got []string
		for _, s := range sequencesFor(c.can, p) {
			got = append(got, s.name)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("with %v: %v, want %s", c.can, got, c.want)
		}
	}
	if err := checkSequences(p); err != nil {
		t.Error(err)
	}
	others := workload.Params{Kind: workload.Mixed, Sequences: allBut + "plain, tries"}.Defaults()
	for _, s := range sequencesFor(promise.Reentrant|promise.Try, others) {
		if s.name == "plain" || s.name == "tries" {
			t.Errorf("%q is executed, although the parameters leave it out", s.name)
		}
	}
	for _, wrong := range []workload.Params{
		{Kind: workload.Mixed, Sequences: "nested, trys"},
		{Kind: workload.Mixed, Sequences: allBut + "trys"},
		{Kind: workload.Mixed, Sequences: "nested; trys"},
		{Kind: workload.Mixed, Sequences: "nested;"},
		{Kind: workload.Mixed, Sequences: "; nested"},
	} {
		if err := checkSequences(wrong.Defaults()); err == nil {
			t.Errorf("%+v is valid", wrong)
		}
	}
}

// TestSequencesOfClients: of several lists, clients have one each, in turn.
func TestSequencesOfClients(t *testing.T) {
	p := workload.Params{Kind: workload.Mixed, Sequences: "nested, tries; all but nested ;plain"}.Defaults()
	if err := checkSequences(p); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"nested, tries", "all but nested", "plain", "nested, tries"} {
		if got := ofClient(p, i).Sequences; got != want {
			t.Errorf("client %d: %q, want %q", i, got, want)
		}
	}
}

// TestHoldAndWait: one client holds a key for long, and another one asks for all keys at once and waits for it.
func TestHoldAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, lock := workloadtest.NewTape(), workloadtest.NewLock()
		var group sync.WaitGroup
		for i := range 2 {
			c := workloadtest.NewClient(lock)
			e := workloadtest.Env(c, tape, i, 2, uint64(i))
			e.Params.Kind, e.Params.Keys, e.Params.Wait = workload.Mixed, 2, 2*longestHold
			e.Params.Sequences = "held for long; all keys at once"
			e.Can = promise.MultiKey | promise.Watchdog | promise.ReportsLoss
			stop := make(chan struct{})
			time.AfterFunc(3*longestHold, func() { close(stop) })
			group.Go(func() { run(t.Context(), stop, e) })
		}
		group.Wait()
		held, asked := 0, 0
		for _, s := range tape.History(t).Spans {
			switch {
			case s.Op == history.OpAcquire && s.Part:
				asked++
			case s.Op == history.OpRelease && int(s.Process) == 0 && !s.Part:
				held++
			}
		}
		if held < 2 || held > 3 || asked == 0 {
			t.Errorf("client 0 released %d times, and %d acquires were of both keys", held, asked)
		}
	})
}
