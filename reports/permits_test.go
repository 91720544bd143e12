package reports

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// TestPermitsWithLeases: a key of permits has no expiry; each of them has, if its grant had a validity.
func TestPermitsWithLeases(t *testing.T) {
	for valid, want := range map[float64]string{990: "each ends with its lease", 0: "no expiry"} {
		s := newSynth("permits", "orders", 1, cluster.Topology{Kind: cluster.Single}, 1)
		s.add(10, history.Invoke, 0, history.Acquire, &history.Value{Owner: "a", Permits: 1, Limit: 3})
		s.add(11, history.OK, 0, history.Acquire, &history.Value{Owner: "a", Valid: ms(valid)})
		s.number()
		if got := s.load(t).ExpiryText(history.KeyState{Permits: 1, Limit: 3, TTL: -1}); got != want {
			t.Errorf("valid for %v ms: %q, want %q", valid, got, want)
		}
	}
}

// TestKeyIsDecoded: who holds a key, for each way in which a lock is stored.
func TestKeyIsDecoded(t *testing.T) {
	s := newSynth("decode", "orders", 3, idleRun().m.Topology, 1)
	s.hold(1, "own-1-aaaa", 0, holdTimes{10, 11, 420, 990})
	s.hold(2, "own-2-bbbb", 0, holdTimes{500, 501, 900, 990})
	for _, seen := range []struct {
		at    float64
		value string
	}{{450, ""}, {700, "1"}, {2000, "1"}, {2100, ""}, {2200, "f3a1"}} {
		x := history.Sample{Sent: ms(seen.at), Time: ms(seen.at), Node: "n1", Role: "master", Up: true}
		if seen.value != "" {
			x.Keys = map[string]history.KeyState{"orders": {Owner: seen.value, TTL: -1}}
		}
		s.samples = append(s.samples, x)
	}
	s.number()
	r := s.load(t)
	for want, c := range map[string]struct {
		at    float64
		state history.KeyState
	}{
		"client 1":                           {100, history.KeyState{Owner: "own-1-aaaa"}},
		"client 1 (earlier hold)":            {600, history.KeyState{Owner: "own-1-aaaa"}},
		"client 2 writes":                    {600, history.KeyState{Owner: "own-2-bbbb", Mode: "write"}},
		"clients 1, 2 read":                  {600, history.KeyState{Owners: []string{"own-2-bbbb", "own-1-aaaa"}}},
		"clients 1 and 1 unknown owner read": {600, history.KeyState{Owners: []string{"own-1-aaaa", "x"}}},
		"2 of 3 permits":                     {600, history.KeyState{Permits: 2, Limit: 3}},
		"client 1 · count 2":                 {100, history.KeyState{Owner: "own-1-aaaa", Count: 2}},
		"client 2":                           {700, history.KeyState{Owner: "1", TTL: -1}},  // SETNX: it appeared with the hold
		"client 2 (earlier hold)":            {2000, history.KeyState{Owner: "1", TTL: -1}}, // and stayed after its release
		"unknown value":                      {2200, history.KeyState{Owner: "f3a1", TTL: -1}},
	} {
		smp := &history.Sample{Sent: ms(c.at), Time: ms(c.at), Up: true, Keys: map[string]history.KeyState{"orders": c.state}}
		if got := r.HeldBy("orders", smp).Label; got != want {
			t.Errorf("%+v at %v is %q, want %q", c.state, smp.Time, got, want)
		}
	}
}

// TestSessionIsDecoded: a server that knows the session of a holder and no owner. The session belongs to the client
// that held the lock while it was seen, also when nobody is known to hold the lock.
func TestSessionIsDecoded(t *testing.T) {
	s := newSynth("decode", "orders", 3, cluster.Topology{Kind: cluster.Etcd, Masters: 1}, 1)
	s.hold(0, "c0-1", 0, holdTimes{5, 11, 420, 990})
	s.hold(1, "c1-1", 0, holdTimes{500, 501, 900, 990})
	s.add(1000, history.Invoke, 0, history.Acquire, &history.Value{Owner: "c0-2"})
	s.add(1800, history.Info, 0, history.Acquire, nil)
	s.add(2500, history.Invoke, 2, history.Acquire, &history.Value{Owner: "c2-1"})
	in := func(session string) map[string]history.KeyState {
		return map[string]history.KeyState{"orders": {Session: session, TTL: -1}}
	}
	for _, at := range []struct {
		at      float64
		session string
	}{{20, "a"}, {100, "a"}, {430, "a"}, {600, "b"}, {1100, "a"}, {2600, "c"}} {
		s.samples = append(s.samples, history.Sample{Sent: ms(at.at), Time: ms(at.at), Node: "n1", Up: true,
			Keys: in(at.session)})
	}
	s.number()
	r := s.load(t)
	for _, test := range []struct {
		at            float64
		session, want string
	}{{100, "a", "client 0"}, {430, "a", "client 0 (earlier hold)"}, {600, "b", "client 1"},
		{950, "b", "client 1 (earlier hold)"}, {1100, "a", "client 0"}, {2000, "a", "client 0"},
		{2600, "c", "unknown owner"}} {
		smp := &history.Sample{Sent: ms(test.at), Time: ms(test.at), Up: true, Keys: in(test.session)}
		if got := r.HeldBy("orders", smp).Label; got != test.want {
			t.Errorf("session %s at %v is %q, want %q", test.session, smp.Time, got, test.want)
		}
	}
}

// TestOverlapsOfOtherKeys: the timeline of one key has no overlap of another.
func TestOverlapsOfOtherKeys(t *testing.T) {
	s := failoverRun("orders")
	other := s.j.Results[0].Violations[0]
	other.Key, other.Start, other.End, other.Text = "stock", ms(3500), ms(3600), "another key"
	s.j.Results[0].Violations = append(s.j.Results[0].Violations, other)
	svg, notes := timeline.New(s.load(t)).HTML()
	if strings.Contains(string(svg), "another key") {
		t.Error("the overlap of another key is in the picture")
	}
	if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "1 more violation of other keys") }) {
		t.Errorf("no note about it: %q", notes)
	}
}
