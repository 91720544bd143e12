package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestBusyScript compares a server on which a script does not end with a real one: every line is sent by one of two
// connections while a third one runs the script.
func TestBusyScript(t *testing.T) {
	server := startReal(t)
	for _, args := range [][]string{{"CONFIG", "SET", "lua-time-limit", "1"}, {"CONFIG", "RESETSTAT"}} {
		if _, err := server.control.ask(args...); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	both := openSideBySide(t, server, w, "a", "b", "runs", "fourth")
	conns, simulated, compare, ask := both.conns, both.simulated, both.compare, both.ask
	busy := func(line string) {
		t.Helper()
		fmt.Fprint(conns["runs"], line+"\r\n")
		eventuallyBusy(t, conns["fourth"])
		compare("runs", line, nil)
	}
	ask("a", "SCRIPT KILL")
	ask("a", "SET k v")
	if _, err := conns["b"].ask("SUBSCRIBE", "news"); err != nil {
		t.Fatal(err)
	}
	simulated["b"].send("SUBSCRIBE news")
	busy(`EVAL "local x = 1 while true do end" 0`)
	for _, line := range []string{
		"PING", "GET k", "SET k w", "EVAL return(1) 0", "EVALSHA x 0", "SUBSCRIBE n", "CLIENT ID", "INFO", "CONFIG GET save",
		"SCRIPT EXISTS x", "HELLO x", "AUTH x y", "WATCH k", "UNWATCH", "NOSUCH", "GET", "MULTI", "GET k", "EXEC",
		"MULTI", "DISCARD", "RESET", "PING",
	} {
		ask("a", line)
	}
	ask("b", "GET k") // subscribed
	ask("a", "SCRIPT KILL")
	want, err := conns["runs"].r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if got := simulated["runs"].got.String(); got != want {
		t.Errorf("the script: %q, a real server replies %q", got, want)
	}
	simulated["runs"].got.Reset()
	for _, line := range []string{"EXISTS k", "SCRIPT KILL"} {
		ask("a", line)
	}
	ask("runs", "PING")
	busy(`EVAL "redis.call('SET', KEYS[1], 'x') while true do end" 1 k`)
	ask("a", "SCRIPT KILL") // UNKILLABLE: it has written
	ask("a", "PING")
}

// eventuallyBusy waits until a real server replies BUSY.
func eventuallyBusy(t *testing.T, c *realConn) {
	t.Helper()
	eventuallyRefuses(t, c, "BUSY")
}

// eventuallyRefuses waits until a real server replies to PING with an error that begins with a code.
func eventuallyRefuses(t *testing.T, c *realConn, code string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if v, err := c.ask("PING"); err != nil {
			t.Fatal(err)
		} else if strings.HasPrefix(v.text, code) {
			return
		}
	}
	t.Fatalf("the server does not reply %s", code)
}

// TestBusyServerKeepsTime: while a script runs no timer does, and the timers due then fire when it was killed.
func TestBusyServerKeepsTime(t *testing.T) {
	w := newWorld(t)
	a, b, runs := w.open("a"), w.open("b"), w.open("runs")
	a.send("SET k v PX 100")
	if got := b.send("BLPOP list 1"); got != "" {
		t.Fatal(got)
	}
	runs.send(`EVAL "while true do end" 0`)
	w.now = w.now.Add(2 * time.Second)
	if at, planned := w.s.NextWake(); planned {
		t.Errorf("a timer is planned for %v", at)
	}
	w.s.Wake()
	if got := b.received(); got != "" {
		t.Errorf("BLPOP replies %q while a script runs", got)
	}
	a.play(t, []step{{"SCRIPT KILL", "+OK"}, {"GET k", "$-1"}})
	w.s.Wake()
	if got := b.received(); got != "*-1" {
		t.Errorf("BLPOP replies %q after its timeout", got)
	}
	if got := runs.received(); !strings.HasPrefix(got, "-ERR Script killed by user") {
		t.Errorf("the script replies %q", got)
	}
}

// TestBusyCallerLeaves: the script runs on without its caller.
func TestBusyCallerLeaves(t *testing.T) {
	w := newWorld(t)
	a, runs := w.open("a"), w.open("runs")
	runs.send(`EVAL "while true do end" 0`)
	runs.Close()
	a.play(t, []step{
		{"PING", "-" + errBusy}, {"SCRIPT KILL", "+OK"}, {"PING", "+PONG"},
		{"MULTI", "+OK"}, {`EVAL "while true do end" 0`, "+QUEUED"},
	})
	if got := a.send("EXEC"); !strings.HasPrefix(got, "*1 -ERR Script killed by user") {
		t.Errorf("in a transaction: %q", got)
	}
	a.play(t, []step{{"PING", "+PONG"}})
}
