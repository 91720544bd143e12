package engine

import (
	"testing"
	"time"
)

func TestBlockedClientsAreServedInTurn(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.open("a:1"), w.open("b:1"), w.open("c:1")
	a.play(t, []step{{"BLPOP l k 0", ""}, {"PING", ""}})
	b.play(t, []step{{"BLMOVE l m LEFT RIGHT 0", ""}})
	w.takeEffects()
	c.play(t, []step{{"RPUSH l 1 2 3", ":3"}})
	if got := a.received(); got != "*2 $1 l $1 1 +PONG" {
		t.Errorf("the first received %q", got)
	}
	if got := b.received(); got != "$1 2" {
		t.Errorf("the second received %q", got)
	}
	if got := w.takeEffects(); got != "RPUSH l 1 2 3 | LPOP l | LMOVE l m LEFT RIGHT" {
		t.Errorf("propagated %q", got)
	}
	c.play(t, []step{{"LRANGE l 0 -1", "*1 $1 3"}, {"LRANGE m 0 -1", "*1 $1 2"}})
}

// TestServedClientsResumeLast: a client that was unblocked continues when the client
// that unblocked it has nothing more to execute, even if that unblocks others.
func TestServedClientsResumeLast(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.open("a:1"), w.open("b:1"), w.open("c:1")
	a.play(t, []step{{"BLPOP l 0", ""}, {"GET k", ""}})
	b.play(t, []step{{"BLPOP m 0", ""}, {"RPUSH l 1", ""}, {"SET k late", ""}})
	c.play(t, []step{{"RPUSH m 1", ":1"}})
	if got := a.received(); got != "*2 $1 l $1 1 $4 late" {
		t.Errorf("received %q", got)
	}
}

// TestOverwrittenKeysServeNoClient: Redis 7.0 does not serve blocked clients when it
// overwrites a key; RENAME and COPY remove the old key first.
func TestOverwrittenKeysServeNoClient(t *testing.T) {
	w := newWorld(t)
	a, b := w.open("a:1"), w.open("b:1")
	a.play(t, []step{{"BZPOPMIN z 0", ""}})
	b.play(t, []step{{"ZADD one 1 x", ":1"}, {"SADD z y", ":1"}, {"ZUNIONSTORE z 1 one", ":1"}})
	if got := a.received(); got != "" {
		t.Errorf("received %q", got)
	}
	b.play(t, []step{{"COPY one z REPLACE", ":1"}})
	if got := a.received(); got != "*3 $1 z $1 x $1 1" {
		t.Errorf("received %q", got)
	}
}

func TestBlockedClientsTimeOut(t *testing.T) {
	w := newWorld(t)
	a := w.open("a:1")
	a.play(t, []step{{"BLPOP l 1.5", ""}, {"SET k v", ""}, {"GET k", ""}})
	at, ok := w.s.NextWake()
	if !ok || at.Sub(w.now) != 1500*time.Millisecond {
		t.Fatalf("next wake is at %v, %v", at.Sub(w.now), ok)
	}
	w.now = at.Add(-time.Millisecond)
	w.s.Wake()
	if got := a.received(); got != "" {
		t.Errorf("received %q too early", got)
	}
	w.now = at
	w.s.Wake()
	if got := a.received(); got != "*-1 +OK $1 v" {
		t.Errorf("received %q", got)
	}
	if _, ok := w.s.NextWake(); ok {
		t.Error("there is still a timeout")
	}
}

func TestBlockedClientIsClosedOrUnblocked(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.open("a:1"), w.open("b:1"), w.open("c:1")
	a.play(t, []step{{"BLPOP l 0", ""}})
	b.play(t, []step{{"BLPOP l 0", ""}})
	a.Close()
	c.play(t, []step{{"CLIENT UNBLOCK 2 ERROR", ":1"}, {"RPUSH l 1", ":1"}, {"LLEN l", ":1"}})
	if got := b.received(); got != "-UNBLOCKED client unblocked via CLIENT UNBLOCK" {
		t.Errorf("received %q", got)
	}
}

// TestNodeCommands: the owner of a server adds commands.
func TestNodeCommands(t *testing.T) {
	var waiting *Conn
	w := newWorld(t, func(cfg *Config) {
		cfg.Extra = map[string]Command{
			"wait": func(c *Conn, _ [][]byte) {
				waiting = c
				c.Block(time.Time{}, func() { c.WriteInt(0) })
			},
			"cluster|info": func(c *Conn, _ [][]byte) { c.WriteBulkString("cluster_state:ok") },
		}
		cfg.Guard = func(c *Conn, cmd *Spec, args [][]byte) string {
			if c.FlagsOf(cmd)&Write != 0 && cmd.Name != "del" {
				return "READONLY You can't write against a read only replica."
			}
			return ""
		}
	})
	a := w.open("a:1")
	a.play(t, []step{
		{"CLUSTER INFO", "$16 cluster_state:ok"},
		{"CLUSTER FOO", "-ERR unknown subcommand 'FOO'. Try CLUSTER HELP."},
		{"SET a 1", "-READONLY You can't write against a read only replica."},
		{"MULTI", "+OK"},
		{"SET a 1", "-READONLY You can't write against a read only replica."},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{`EVAL "return redis.call('set','a','1')" 0`, "-READONLY You can't write against a read only replica. " +
			"script: 67ed14c1cb086d8c2fcf91ebe13410ba087fd0f8, on @user_script:1."},
		{"WAIT 1 0", ""}, {"PING", ""},
	})
	w.s.Serve(func() {
		waiting.WriteInt(1)
		waiting.Unblock()
	})
	if got := a.received(); got != ":1 +PONG" {
		t.Errorf("received %q", got)
	}
}

func TestKeysOfCommands(t *testing.T) {
	s := newWorld(t).s
	for _, row := range []struct{ say, keys string }{
		{"GET a", "a"}, {"MSET a 1 b 2", "a b"}, {"DEL a b c", "a b c"}, {"PING", ""}, {"BLPOP a b 0", "a b"},
		{"EVAL x 2 a b c", "a b"}, {"ZUNIONSTORE d 2 a b", "d a b"}, {"BLMPOP 0 1 a LEFT", "a"},
		{"OBJECT ENCODING a", "a"}, {"EVALSHA x 9 a", ""}, {"LMOVE a b LEFT LEFT", "a b"}, {"SPUBLISH c m", "c"},
	} {
		words, _ := splitWords([]byte(row.say))
		got := ""
		for _, key := range s.Lookup(words).Keys(words) {
			got += " " + string(key)
		}
		if got != "" {
			got = got[1:]
		}
		if got != row.keys {
			t.Errorf("%s has the keys %q, want %q", row.say, got, row.keys)
		}
	}
}
