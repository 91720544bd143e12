package runner

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// scripted is a client that refuses acquires with the codes of a list, one after the other, and then grants them.
type scripted struct {
	client.Client
	codes    []string
	acquires int
}

func (c *scripted) Do(_ context.Context, r client.Request) (client.Reply, error) {
	if r.Op != history.Acquire {
		return client.Reply{Type: "ok"}, nil
	}
	if c.acquires++; c.acquires > len(c.codes) {
		return client.Reply{Type: "ok"}, nil
	}
	code := c.codes[c.acquires-1]
	if code == "unknown" {
		return client.Reply{Type: "info", Code: code}, nil
	}
	code, text, _ := strings.Cut(code, " ")
	return client.Reply{Type: "fail", Code: code, Error: text}, nil
}

// TestProbeRetriesServerErrors: a probe retries while servers refuse for reasons that are not the lock's, and takes
// the first outcome that is.
func TestProbeRetriesServerErrors(t *testing.T) {
	many := func(code string, n int) (codes []string) {
		for range n {
			codes = append(codes, code)
		}
		return codes
	}
	for _, test := range []struct {
		name     string
		codes    []string
		outcome  history.Type
		acquires int
	}{
		{"granted", nil, history.OK, 1},
		{"held", []string{"held"}, history.Fail, 1},
		{"timeout", []string{"timeout"}, history.Fail, 1},
		{"no replica yet", []string{"too-few-replicas", "too-few-replicas"}, history.OK, 3},
		{"no replica yet, then held", []string{"too-few-replicas", "held"}, history.Fail, 2},
		{"no replica for the server", []string{"timeout acquire lock: NOREPLICAS Not enough", "held"}, history.Fail, 2},
		{"never a replica", many("too-few-replicas", 1000), history.Info, 32},
		{"any other refusal", []string{"error"}, history.Fail, 1},
		{"unknown once", []string{"unknown"}, history.OK, 2},
		{"never known", many("unknown", 1000), history.Info, maxUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &scripted{codes: test.codes}
				s := &stage{run: &run{}, clock: clockFromNow(), clients: []client.Client{c}}
				outcome, _ := s.probeUntilSettled(t.Context(), 0, "k")
				if outcome != test.outcome || c.acquires != test.acquires {
					t.Errorf("%v after %d acquires, want %v after %d", outcome, c.acquires, test.outcome, test.acquires)
				}
			})
		})
	}
}

// TestLockOfKeys: a key belongs to the lock whose name is its hash tag, wherever that is in its name.
func TestLockOfKeys(t *testing.T) {
	locks := map[string]*history.LeftoverValue{"orders": {}, "{a}-1": {}}
	for name, want := range map[string]string{
		"orders": "orders", "{orders}:token": "orders", "redisson_lock_token:{orders}": "orders", "orders/1": "orders",
		"{a}-1": "{a}-1", "orders-2": "", "{orders-2}:token": "", "x:{orders": "", "{}": "", "other": "",
	} {
		if got := lockOf(name, locks); got != want {
			t.Errorf("%s belongs to %q, want %q", name, got, want)
		}
	}
}

// TestKeptKeys: keys that a lock may leave at the servers have to expire if it says so.
func TestKeptKeys(t *testing.T) {
	name := func(what string) func(key string) []string {
		return func(key string) []string { return []string{key + what} }
	}
	s := &stage{run: &run{params: workload.Params{Keys: 1}, locks: []client.Spec{
		{PersistentKeys: name(":guard")}, {PersistentKeys: name(":token"), ExpiringKeys: name(":token")}, {},
	}}}
	key := s.run.params.KeyNames()[0]
	kept, expire := s.keptKeys()
	if !kept[key+":guard"] || !kept[key+":token"] || expire[key+":guard"] || !expire[key+":token"] {
		t.Errorf("kept %v, of which %v expire", kept, expire)
	}
}
