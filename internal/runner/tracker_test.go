package runner

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/scenarios"
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

// TestWaiting: a client waits whether its request comes before the grant to another client or after it; a client that
// tries, or requests another lock, does not.
func TestWaiting(t *testing.T) {
	type event struct {
		client int
		f, key string
		typ    history.Type
	}
	asks := func(client int, f, key string) event { return event{client, f, key, history.Invoke} }
	granted := func(client int) event { return event{client, history.Acquire, "k", history.OK} }
	for name, c := range map[string]struct {
		events []event
		want   bool
	}{
		"requested after the grant": {[]event{asks(0, history.Acquire, "k"), granted(0), asks(1, history.Acquire, "k")}, true},
		"requested before it":       {[]event{asks(0, history.Acquire, "k"), asks(1, history.Acquire, "k"), granted(0)}, true},
		"nobody is granted it":      {[]event{asks(0, history.Acquire, "k"), asks(1, history.Acquire, "k")}, false},
		"only its holder":           {[]event{asks(0, history.Acquire, "k"), granted(0)}, false},
		"a try before it":           {[]event{asks(0, history.Acquire, "k"), asks(1, history.Try, "k"), granted(0)}, false},
		"another lock":              {[]event{asks(0, history.Acquire, "k"), asks(1, history.Acquire, "m"), granted(0)}, false},
	} {
		track := newTracker(2, []string{"k", "m"})
		trigger := track.arm(scenarios.Waiting)
		for i, e := range c.events {
			track.add(history.Event{Time: time.Duration(i), Process: history.Process(e.client), F: e.f, Type: e.typ, Key: e.key,
				Value: &history.Value{Owner: strconv.Itoa(e.client)}})
		}
		if got := len(trigger.fired) == 1; got != c.want {
			t.Errorf("%s: fired is %v, want %v", name, got, c.want)
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

// TestServersFireTriggers: a grant that its client does not know of, and a renewal that nobody reports.
func TestServersFireTriggers(t *testing.T) {
	sample := func(at time.Duration, owner string, ttl time.Duration) history.Sample {
		s := history.Sample{Node: "n1", Up: true, Role: "master", Sent: at, Time: at}
		if owner != "" {
			s.Keys = map[string]history.KeyState{"k": {Owner: owner, Count: 1, TTL: ttl}}
		}
		return s
	}
	track := newTracker(2, []string{"k"})
	requested, granted, renewed := track.arm("requested"), track.arm("granted"), track.arm("renewed")
	fired := func(want ...*armedTrigger) {
		t.Helper()
		for _, a := range []*armedTrigger{requested, granted, renewed} {
			if got := len(a.fired) == 1; got != slices.Contains(want, a) {
				t.Errorf("trigger %s fired: %v", a.when, got)
			}
		}
	}
	track.sampled(sample(1, "b", 50))
	fired()
	track.add(history.Event{Time: 2, Type: history.Invoke, F: history.Acquire, Key: "k", Value: &history.Value{Owner: "a"}})
	fired(requested)
	track.sampled(sample(3, "b", 40))
	track.sampled(sample(4, "", 0))
	fired(requested)
	track.sampled(sample(5, "a", 60))
	fired(requested, granted)
	if f := track.inFlight(0); f != history.Acquire {
		t.Errorf("in flight: %q", f)
	}
	track.add(history.Event{Time: 6, Type: history.OK, F: history.Acquire, Key: "k", Value: &history.Value{Owner: "a"}})
	if _, ok := track.Acquiring(0); ok || track.inFlight(0) != "" {
		t.Error("the acquire is in flight after its completion")
	}
	track.sampled(sample(7, "a", 50))
	fired(requested, granted)
	track.sampled(sample(8, "a", 60))
	fired(requested, granted, renewed)
}

// TestFaultThatMissedItsRequest: a fault that hit another request than the step names has no effect.
func TestFaultThatMissedItsRequest(t *testing.T) {
	n := &nemesis{track: newTracker(2, []string{"k"})}
	release := &active{target: "client:0>n1", hits: history.Release}
	for _, c := range []struct{ f, want string }{
		{"", "client:0 had no request in flight, but the fault must hit its release"},
		{history.Try, "the fault hit the acquire of client:0, but must hit its release"},
		{history.Release, ""},
	} {
		if c.f != "" {
			n.track.add(history.Event{Type: history.Invoke, F: c.f, Key: "k"})
		}
		if got := n.missedRequest(release); got != c.want {
			t.Errorf("with %q in flight: %q, want %q", c.f, got, c.want)
		}
	}
	if got := n.missedRequest(&active{target: "client:0"}); got != "" {
		t.Errorf("a fault that may hit anything: %q", got)
	}
}

// TestDoubt: the lease of an acquire of unknown outcome begins when the outcome is recorded, at the latest.
func TestDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		track := newTracker(1, []string{"k"})
		unknown := &history.Error{Code: "no-reply"}
		track.add(history.Event{Type: history.Info, F: history.Release, Key: "k", Error: unknown})
		track.add(history.Event{Type: history.Fail, F: history.Acquire, Key: "k", Error: unknown})
		if at := track.doubtUntil(time.Second); !at.IsZero() {
			t.Errorf("in doubt until %v although no acquire had an unknown outcome", at)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		track.add(history.Event{Type: history.Info, F: history.Acquire, Key: "k", Error: unknown})
		if left := time.Until(track.doubtUntil(time.Second)); left != time.Second {
			t.Errorf("in doubt for %v", left)
		}
	})
}

// TestQueuedUntil: a waiter may be in the queue for a time after its client crashed, or after its acquire ended without
// a reply or failed under a fault.
func TestQueuedUntil(t *testing.T) {
	fault := func(phase history.Phase) history.Event {
		v := &history.Value{Fault: &history.FaultValue{ID: 1, Phase: phase}}
		return history.Event{F: "kill", Process: history.Nemesis, Value: v}
	}
	failed := history.Event{Type: history.Fail, F: history.Acquire, Key: "k", Error: &history.Error{Code: "timeout"}}
	lost := history.Event{Type: history.Info, F: history.Acquire, Key: "k", Error: &history.Error{Code: "no-reply"}}
	for name, c := range map[string]struct {
		events []history.Event
		want   time.Duration
	}{
		"a wait ran out without a fault":    {[]history.Event{fault(history.Injected), fault(history.Healed), failed}, 0},
		"a wait ran out under a fault":      {[]history.Event{fault(history.Injected), failed}, waiterTimeout},
		"an acquire ended without a reply":  {[]history.Event{lost}, waiterTimeout},
		"a client crashed":                  {[]history.Event{{Type: history.Info, F: history.Crash}}, waiterTimeout},
		"a release ended without its reply": {[]history.Event{{Type: history.Info, F: history.Release, Key: "k"}}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			track := newTracker(1, []string{"k"})
			for _, e := range c.events {
				track.add(e)
			}
			if at := track.queuedUntil(time.Second); c.want == 0 && !at.IsZero() || c.want > 0 && time.Until(at) != c.want {
				t.Errorf("%s: queued until %v, want in %s", name, at, c.want)
			}
		})
	}
}

// TestHolderOfATriggeredStep: of several holders, the one whose event fired the trigger, while it has that lock.
func TestHolderOfATriggeredStep(t *testing.T) {
	track := newTracker(3, []string{"a", "b"})
	event := func(client int, kind history.Type, f, key string) history.Event {
		e := history.Event{Process: history.Process(client), Type: kind, F: f, Key: key,
			Value: &history.Value{Owner: strconv.Itoa(client)}}
		track.add(e)
		return e
	}
	holder := func(e history.Event, want int) {
		t.Helper()
		if got, ok := (triggeredBy{track, e}).Holder(); !ok || got != want {
			t.Errorf("holder after %s %s of client %d: client %d (%v), want %d", e.F, e.Type, e.Process, got, ok, want)
		}
	}
	event(0, history.Invoke, history.Acquire, "a")
	first := event(0, history.OK, history.Acquire, "a")
	event(1, history.Invoke, history.Acquire, "b")
	second := event(1, history.OK, history.Acquire, "b")
	holder(first, 0)
	holder(second, 1)
	releasing := event(0, history.Invoke, history.Release, "a")
	holder(releasing, 0)
	released := event(0, history.OK, history.Release, "a")
	holder(first, 1)
	holder(released, 1)
	holder(event(2, history.Invoke, history.Acquire, "a"), 1)
}
