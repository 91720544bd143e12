package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
)

// TestKeysSeen: who holds a key, for each way in which a lock is stored.
func TestKeysSeen(t *testing.T) {
	wrongType := errors.New("WRONGTYPE")
	hash := func(pairs ...any) []any { return []any{pairs, wrongType, int64(1500)} }
	const left = 1500 * time.Millisecond
	one := func(seen history.KeyState) map[string]history.KeyState { return map[string]history.KeyState{"k": seen} }
	held := func(owner string, count int, ttl time.Duration) map[string]history.KeyState {
		return one(history.KeyState{Owner: owner, Count: count, TTL: ttl})
	}
	for name, test := range map[string]struct {
		replies []any // to HGETALL, GET, PTTL
		want    map[string]history.KeyState
	}{
		"free":           {[]any{[]any{}, nil, int64(-2)}, nil},
		"another shard":  {[]any{wrongType, wrongType, errors.New("MOVED 1 127.0.0.1:1")}, nil},
		"string":         {[]any{wrongType, "a", int64(1500)}, held("a", 0, left)},
		"no expiry":      {[]any{wrongType, "a", int64(-1)}, held("a", 0, -time.Millisecond)},
		"set":            {[]any{wrongType, wrongType, int64(1500)}, held("", 0, left)},
		"owner, count":   {hash("token", "7", "count", "2", "owner", "a"), held("a", 2, left)},
		"one per holder": {hash("a:1", "3"), held("a:1", 3, left)},
		"with a mode":    {hash("mode", "write", "a:1", "3"), one(history.KeyState{Owner: "a:1", Mode: "write", Count: 3, TTL: left})},
		"a reader": {hash("h:1", "r a", "mode", "read", "reads", "2", "writes", "0", "r:a", "2"),
			one(history.KeyState{Owner: "a", Mode: "read", Count: 2, TTL: left})},
		"readers": {hash("mode", "read", "r:b", "1", "reads", "2", "writes", "0", "r:a", "1"),
			one(history.KeyState{Owner: "a", Owners: []string{"a", "b"}, Mode: "read", TTL: left})},
		"a writer": {hash("h:1", "w a", "mode", "write", "reads", "1", "writes", "1", "writer", "a", "r:a", "1"),
			one(history.KeyState{Owner: "a", Mode: "write", Count: 1, TTL: left})},
		"permits":      {hash("kind", "permits", "total", "3", "free", "1"), one(history.KeyState{Permits: 2, Limit: 3, TTL: left})},
		"all are free": {hash("kind", "semaphore", "total", "3", "free", "3"), nil},
		"cut short":    {[]any{"a"}, nil},
	} {
		if diff := cmp.Diff(test.want, keysSeen([]string{"k"}, test.replies)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestReadKeys: permits whose lease has ended do not count, nor does the time of the harness; a permit that is neither
// leased nor free does.
func TestReadKeys(t *testing.T) {
	semaphore := func(kind string) []any {
		return []any{[]any{"kind", kind, "total", "4", "free", "1"}, errors.New("WRONGTYPE"), int64(-1)}
	}
	for name, test := range map[string]struct {
		kind    string
		members any
		want    int
	}{
		"one of three has ended": {"permits", []any{"a.1", "999999.5", "a.2", "1000000.5", "b.1", "2000000"}, 2},
		"all have ended":         {"permits", []any{"a.1", "1", "a.2", "2", "a.3", "3"}, 0},
		"one is missing":         {"permits", []any{"a.1", "1", "b.1", "2000000"}, 2},
		"the set has expired":    {"permits", []any{}, 0},
		"it cannot be read":      {"permits", errors.New("NOPERM"), 3},
		"without leases":         {"semaphore", errors.New("not asked for"), 3},
	} {
		ask := func(...[]string) ([]any, error) {
			return []any{[]any{"1000", "250"}, []any{"4", "1"}, test.members, []any{"4", "1"}}, nil
		}
		seen, err := ReadKeys(ask, []string{"k"}, semaphore(test.kind))
		if got, held := seen["k"]; err != nil || got.Permits != test.want || held != (test.want > 0) {
			t.Errorf("%s: %d permits, held %v, %v; want %d", name, got.Permits, held, err, test.want)
		}
	}
}

// TestRefusedReads: a key that a server does not have is free there, unless it refuses to read any.
func TestRefusedReads(t *testing.T) {
	for refusal, reads := range map[string]bool{
		"MOVED 105 127.0.0.1:1": true, "ASK 105 127.0.0.1:1": true,
		"CLUSTERDOWN The cluster is down": false, "LOADING Redis is loading the dataset in memory": false,
	} {
		err := errors.New(refusal)
		seen, refused := ReadKeys(nil, []string{"k"}, []any{err, err, err})
		if len(seen) > 0 || reads != (refused == nil) {
			t.Errorf("%s: read %v, %v", refusal, seen, refused)
		}
	}
}

// TestPermitsChangeMeanwhile: readings of a semaphore at two instants are not taken for one.
func TestPermitsChangeMeanwhile(t *testing.T) {
	ask := func(...[]string) ([]any, error) {
		return []any{[]any{"1000", "250"}, []any{"4", "2"}, []any{"a.1", "2000000"}, []any{"4", "3"}}, nil
	}
	semaphore := []any{[]any{"kind", "permits", "total", "4", "free", "2"}, errors.New("WRONGTYPE"), int64(-1)}
	if seen, err := ReadKeys(ask, []string{"k"}, semaphore); err == nil {
		t.Errorf("read %v", seen)
	}
}

// TestKeyTTLs: a key that expires between KEYS and PTTL is left out.
func TestKeyTTLs(t *testing.T) {
	got, err := KeyTTLs(func(commands ...[]string) ([]any, error) {
		if commands[0][0] == "KEYS" {
			return []any{[]any{"a", "b", "c"}}, nil
		}
		return []any{int64(-1), int64(-2), int64(20)}, nil
	})
	want := map[string]time.Duration{"a": -time.Millisecond, "c": 20 * time.Millisecond}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestClientNumber(t *testing.T) {
	for name, want := range map[string]int{ClientName(0): 0, "client:12": 12, "client:?": -1, "client:-1": -1, "n1": -1} {
		got, ok := ClientNumber(name)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("ClientNumber(%q) = %d, %v, want %d", name, got, ok, want)
		}
	}
}
