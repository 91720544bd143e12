package locktest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

// clients is what a lock does with go-redis clients that users give it.
func clients() []behavior {
	return []behavior{
		{"ring-is-refused", func(s Spec) bool { return s.On != nil && s.Topology == Single }, ringRefused},
		{"one-server-is-no-quorum", func(s Spec) bool { return s.On != nil && s.Topology == Quorum }, oneServerRefused},
		{"guarded-script-runs-once", func(s Spec) bool { return s.Guard != nil && s.Topology == Single }, guardRunsOnce},
	}
}

// ringRefused: a Ring forgets what a shard held when the shard fails.
func ringRefused(t *testing.T, s *fixture) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": s.servers.masters[0].Addr}})
	defer ring.Close()
	if l, err := s.spec.On(ring); err == nil {
		closeLocker(t, l)
		t.Error("a Ring was accepted")
	}
}

// oneServerRefused: three databases of one server have one vote, not three.
func oneServerRefused(t *testing.T, s *fixture) {
	var rdbs []redis.UniversalClient
	for db := range 3 {
		rdb := redis.NewClient(&redis.Options{Addr: s.servers.masters[0].Addr, DB: db})
		defer rdb.Close()
		rdbs = append(rdbs, rdb)
	}
	l, err := s.spec.On(rdbs...)
	if err != nil {
		return
	}
	defer closeLocker(t, l)
	if h, err := l.TryAcquire(context.Background(), s.name, s.longLease()); err == nil {
		s.release(t, h)
		t.Error("three databases of one server were accepted as three masters")
	}
}

// guardRunsOnce: the reply to a script of the guarded resource is lost, and the user's client sends commands again by
// itself, as go-redis does unless it is forbidden. Nobody but the caller may decide to run the script again.
func guardRunsOnce(t *testing.T, s *fixture) {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: s.servers.addrs[0], MaxRetries: 3})
	defer rdb.Close()
	const script = "return redis.call('INCR', KEYS[1])"
	if err := s.spec.Guard(ctx, rdb, 1, script, s.name); err != nil { // the server knows it from now on
		t.Fatal(err)
	}
	s.dropReplies(t, func() {
		if err := s.spec.Guard(ctx, rdb, 2, script, s.name); err == nil {
			t.Error("a script without a reply was reported as run: it was sent again")
		}
	})
	if n, err := s.servers.direct[0].Get(ctx, s.name).Int(); n != 2 || err != nil {
		t.Errorf("two calls ran the script %d times (%v)", n, err)
	}
}
