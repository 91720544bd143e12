package engine

import (
	"bytes"
	"testing"
	"time"
)

// TestVersion: while the version stays the same, so do all keys.
func TestVersion(t *testing.T) {
	scripts := append(lockScripts(t), ownScripts...)
	now := time.UnixMilli(1_700_000_000_000) // nothing expires
	same := 0
	for seed := uint64(1); seed <= 300; seed++ {
		s := New(Config{Now: func() time.Time { return now }, Seed: seed})
		var conns [clients]*Conn
		for i := range conns {
			conns[i] = s.Open("127.0.0.1:1", func([]byte) {})
		}
		moves := newGenerator(seed, now.UnixMilli(), scripts).sequence()
		for i, m := range moves {
			if m.pause {
				continue
			}
			version, before := s.Version(), dump(s)
			conns[m.client].Feed(encode(m.args))
			if s.Version() != version {
				continue
			}
			if !bytes.Equal(before, dump(s)) {
				t.Fatalf("seed %d: version %d with other keys after\n  %s", seed, version, join(moves[:i+1]))
			}
			same++
		}
	}
	if same == 0 {
		t.Error("every command has changed the version")
	}
}
