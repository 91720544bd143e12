package engine

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"
)

// world is a server with a manual clock.
type world struct {
	t       *testing.T
	s       *Server
	now     time.Time
	effects []string // propagated commands, one line per unit
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	w := &world{t: t, now: time.UnixMilli(1_700_000_000_000)}
	cfg := Config{Now: func() time.Time { return w.now }, Seed: 1, Propagate: w.note}
	for _, f := range change {
		f(&cfg)
	}
	w.s = New(cfg)
	return w
}

func (w *world) note(db int, cmds [][][]byte) {
	var unit []string
	for _, args := range cmds {
		var words []string
		for _, a := range args {
			words = append(words, string(a))
		}
		unit = append(unit, strings.Join(words, " "))
	}
	w.effects = append(w.effects, strings.Join(unit, "; "))
}

// takeEffects returns the commands propagated since the last call.
func (w *world) takeEffects() string {
	all := strings.Join(w.effects, " | ")
	w.effects = nil
	return all
}

// user is a client.
type user struct {
	*Conn
	got   strings.Builder
	ended bool
}

func (w *world) open(addr string) *user {
	u := &user{}
	u.Conn = w.s.Open(addr, func(p []byte) {
		if p == nil {
			u.ended = true
		}
		u.got.Write(p)
	})
	return u
}

// send sends a line, whose words may be quoted, and returns the reply, with blanks for
// line ends.
func (u *user) send(line string) string {
	u.Feed([]byte(line + "\r\n"))
	return u.received()
}

// received returns the output since the last call.
func (u *user) received() string {
	got := u.got.String()
	u.got.Reset()
	return strings.TrimSpace(strings.ReplaceAll(got, "\r\n", " "))
}

// step is a line and the expected reply.
type step struct{ send, want string }

func (u *user) play(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		if got := u.send(s.send); got != s.want {
			t.Errorf("%s\n  replies %q\n  want    %q", s.send, got, s.want)
		}
	}
}

// dump is the data set: keys, values and expiries, in order.
func dump(s *Server) []byte {
	var b []byte
	for _, db := range s.dbs {
		b = binary.AppendUvarint(b, uint64(db.keys.len()))
		for key, o := range db.keys.all() {
			b = appendText(b, key)
			b = append(b, byte(o.kind))
			b = binary.AppendVarint(b, o.expires)
			b = dumpValue(b, o)
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func dumpValue(b []byte, o *object) []byte {
	switch v := o.val.(type) {
	case *hash:
		b = binary.AppendUvarint(b, uint64(v.len()))
		for name, value := range v.all() {
			b = appendText(appendText(b, name), string(value))
		}
	case *list:
		b = binary.AppendUvarint(b, uint64(v.len()))
		for _, item := range v.all() {
			b = appendText(b, string(item))
		}
	case *set:
		b = binary.AppendUvarint(b, uint64(v.len()))
		for name := range v.all() {
			b = appendText(b, name)
		}
	case *zset:
		b = binary.AppendUvarint(b, uint64(v.scores.len()))
		for name, score := range v.scores.all() {
			b = binary.BigEndian.AppendUint64(appendText(b, name), math.Float64bits(score))
		}
	default:
		b = appendText(b, string(o.str))
	}
	return b
}
