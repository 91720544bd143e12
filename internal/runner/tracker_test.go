package runner

import (
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// TestOverlapNeedsAConflict: neither a re-entry, nor readers, nor the permits of a semaphore are two holders of a
// lock.
func TestOverlapNeedsAConflict(t *testing.T) {
	for _, c := range []struct {
		name    string
		first   history.Value
		second  history.Value
		overlap bool
	}{
		{"two owners", history.Value{Owner: "a"}, history.Value{Owner: "b"}, true},
		{"re-entry", history.Value{Owner: "a"}, history.Value{Owner: "a"}, false},
		{"readers", history.Value{Owner: "a", Mode: "read"}, history.Value{Owner: "b", Mode: "read"}, false},
		{"reader and writer", history.Value{Owner: "a", Mode: "read"}, history.Value{Owner: "b"}, true},
		{"permits", history.Value{Owner: "a", Permits: 2, Limit: 3}, history.Value{Owner: "b", Permits: 1, Limit: 3}, false},
		{"too many permits", history.Value{Owner: "a", Permits: 2, Limit: 3}, history.Value{Owner: "b", Permits: 2, Limit: 3},
			true},
	} {
		track := newTracker(2, []string{"k"})
		for i, v := range []history.Value{c.first, c.second} {
			e := history.Event{Time: time.Duration(i), Process: history.Process(i), F: history.Acquire, Key: "k", Value: &v}
			for _, e.Type = range []history.Type{history.Invoke, history.OK} {
				track.add(e)
			}
		}
		if got := track.snapshot().Overlaps; got != c.overlap {
			t.Errorf("%s: overlap %v, want %v", c.name, got, c.overlap)
		}
	}
}

// TestInnerReleaseKeepsTheLock: the client holds the lock until it has released it as often as it acquired it.
func TestInnerReleaseKeepsTheLock(t *testing.T) {
	track := newTracker(1, []string{"k"})
	do := func(f string) {
		for _, typ := range []history.Type{history.Invoke, history.OK} {
			track.add(history.Event{F: f, Type: typ, Key: "k", Value: &history.Value{Owner: "a"}})
		}
	}
	do(history.Acquire)
	do(history.Acquire)
	do(history.Release)
	if held := track.snapshot().Holders["k"]; len(held) != 1 {
		t.Errorf("after the inner release the holders are %v", held)
	}
	do(history.Release)
	if held := track.snapshot().Holders["k"]; len(held) != 0 {
		t.Errorf("after the outer release the holders are %v", held)
	}
}
