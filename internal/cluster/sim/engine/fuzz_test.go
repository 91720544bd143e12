package engine

import (
	"testing"
	"time"
)

// FuzzFeed feeds any bytes, in two pieces: the engine does not panic, and its output is
// valid replies.
func FuzzFeed(f *testing.F) {
	g := newGenerator(1, 1_700_000_000_000, append(lockScripts(f), ownScripts...))
	for range 50 {
		var all []byte
		for _, m := range g.sequence() {
			if !m.pause {
				all = append(all, encode(m.args)...)
			}
		}
		f.Add(all, len(all)/2)
	}
	for _, text := range []string{"PING\r\n", "*1\r\n$4\r\nPING\r\n", "*-1\r\n", "*1\r\n:1\r\n", "*x\r\n", "\"a\r\n",
		"*2\r\n$-1\r\n", "SET a \"\\x00\\n\"\r\nGET a\r\n", "\r\n", "*99999999999\r\n", "*1\r\n$999999999999\r\n"} {
		f.Add([]byte(text), 1)
	}
	f.Fuzz(func(t *testing.T, p []byte, cut int) {
		now := time.UnixMilli(1_700_000_000_000)
		s := New(Config{Now: func() time.Time { return now }})
		var out []byte
		c := s.Open("a:1", func(p []byte) { out = append(out, p...) })
		cut = max(0, min(cut, len(p)))
		c.Feed(p[:cut])
		now = now.Add(time.Second)
		s.Wake()
		c.Feed(p[cut:])
		if _, err := values(string(out)); err != nil {
			t.Fatalf("the output is not a reply: %v in %q", err, out)
		}
	})
}
