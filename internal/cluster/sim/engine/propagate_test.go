package engine

import (
	"bytes"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// TestReplicaIsEqual plays random sequences on a master, applies its effects to a
// replica, and compares the data sets: keys, values, expiries, order.
func TestReplicaIsEqual(t *testing.T) {
	n := 3000
	if race.Short() {
		n = 300
	}
	scripts := append(lockScripts(t), ownScripts...)
	effects := 0
	for seed := uint64(1); seed <= uint64(n); seed++ {
		now := time.UnixMilli(1_700_000_000_000)
		clock := func() time.Time { return now }
		replica := New(Config{Now: clock, Seed: 7})
		replica.SetReplica(true)
		master := New(Config{Now: clock, Seed: seed, Propagate: func(db int, cmds [][][]byte) {
			effects += len(cmds)
			replica.Apply(db, cmds)
		}})
		g := newGenerator(seed, now.UnixMilli(), scripts)
		var conns [clients]*Conn
		for i := range conns {
			conns[i] = master.Open("127.0.0.1:1", func([]byte) {})
		}
		moves := g.sequence()
		for _, m := range moves {
			now = now.Add(time.Duration(g.IntN(3)) * time.Millisecond)
			if m.pause {
				now = now.Add(5 * time.Millisecond)
				master.Wake()
				continue
			}
			conns[m.client].Feed(encode(m.args))
		}
		if !bytes.Equal(dump(master), dump(replica)) {
			t.Fatalf("seed %d: the replica differs after\n  %s\nmaster  %q\nreplica %q", seed, join(moves),
				dump(master), dump(replica))
		}
	}
	if effects < n {
		t.Fatalf("only %d effects of %d sequences: nothing was tested", effects, n)
	}
}

// TestSameBytes: the same calls give the same bytes.
func TestSameBytes(t *testing.T) {
	scripts := append(lockScripts(t), ownScripts...)
	play := func(seed uint64) []byte {
		now := time.UnixMilli(1_700_000_000_000)
		s := New(Config{Now: func() time.Time { return now }, Seed: seed})
		var out []byte
		g := newGenerator(seed, now.UnixMilli(), scripts)
		var conns [clients]*Conn
		for i := range conns {
			conns[i] = s.Open("127.0.0.1:1", func(p []byte) { out = append(append(out, byte('0'+i)), p...) })
		}
		for range 10 {
			for _, m := range g.sequence() {
				now = now.Add(time.Millisecond)
				s.Wake()
				conns[m.client].Feed(encode(m.args))
			}
		}
		return append(out, dump(s)...)
	}
	for seed := uint64(1); seed <= 100; seed++ {
		if a, b := play(seed), play(seed); !bytes.Equal(a, b) {
			t.Fatalf("seed %d: two runs differ, of %d and %d bytes", seed, len(a), len(b))
		}
	}
}

func TestEffects(t *testing.T) {
	w := newWorld(t)
	u := w.open("a:1")
	for _, row := range []struct{ say, effects string }{
		{"SETEX a 10 x", "SET a x PXAT 1700000010000"},
		{"GET a", ""},
		{"SET a y XX GET KEEPTTL", "SET a y XX KEEPTTL"},
		{"EXPIRE a 5", "PEXPIREAT a 1700000005000"},
		{"EXPIRE a -1", "DEL a"},
		{"INCRBYFLOAT f 1.5", "SET f 1.5 KEEPTTL"},
		{"HINCRBYFLOAT h f 1.5", "HSET h f 1.5"},
		{"GETEX f PX 100", "PEXPIREAT f 1700000000100"},
		{"GETEX f PERSIST", "PERSIST f"},
		{"GETDEL f", "DEL f"},
		{"SADD s 1", "SADD s 1"},
		{"SADD s 1", ""},
		{"SPOP s", "DEL s"},
		{"PUBLISH c m", "PUBLISH c m"},
		{"MULTI", ""}, {"SET a 1", ""}, {"SELECT 1", ""}, {"SET b 2", ""}, {"GET b", ""},
		{"EXEC", "SET a 1; SELECT 1; SET b 2"},
		{`EVAL "redis.call('set','k','v','px',5) redis.call('get','k') return redis.call('incr','n')" 0`,
			"SET k v PXAT 1700000000005; incr n"},
		{"SELECT 0", ""},
	} {
		u.send(row.say)
		if got := w.takeEffects(); got != row.effects {
			t.Errorf("%s propagates %q, want %q", row.say, got, row.effects)
		}
	}
}
