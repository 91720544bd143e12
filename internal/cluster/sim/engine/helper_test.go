package engine

import (
	"strings"
	"testing"
	"time"
)

// world is a server with a clock that stands still unless it is moved.
type world struct {
	t       *testing.T
	s       *Server
	now     time.Time
	effects []string // what was propagated, a unit a line
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

// took returns what was propagated since the last call.
func (w *world) took() string {
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

// say sends a line, whose words may be quoted, and returns what came back, with
// blanks for the ends of lines.
func (u *user) say(line string) string {
	u.Feed([]byte(line + "\r\n"))
	return u.heard()
}

// heard returns what came since the last call.
func (u *user) heard() string {
	got := u.got.String()
	u.got.Reset()
	return strings.TrimSpace(strings.ReplaceAll(got, "\r\n", " "))
}

// step is a line that is said, and what has to come back.
type step struct{ say, want string }

func (u *user) play(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		if got := u.say(s.say); got != s.want {
			t.Errorf("%s\n  answers %q\n  want    %q", s.say, got, s.want)
		}
	}
}
