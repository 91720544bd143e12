package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLoading compares a server that reads its data from disk with a real one, which takes about two seconds for it:
// each line is sent by one of two connections.
func TestLoading(t *testing.T) {
	server := startReal(t, "--enable-debug-command", "yes", "--key-load-delay", "10000", "--rdbcompression", "no",
		"--loading-process-events-interval-bytes", "1024")
	reloads, err := server.open()
	if err != nil {
		t.Fatal(err)
	}
	defer reloads.Close()
	w := newWorld(t)
	both := openSideBySide(t, server, w, "a", "b")
	conns, simulated, ask := both.conns, both.simulated, both.ask
	for i := range 200 {
		if _, err := reloads.ask("SET", fmt.Sprint("key", i), strings.Repeat("x", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	ask("a", "SET k v")
	if _, err := conns["b"].ask("SUBSCRIBE", "news"); err != nil {
		t.Fatal(err)
	}
	simulated["b"].send("SUBSCRIBE news")
	fmt.Fprint(reloads, "DEBUG RELOAD\r\n")
	eventuallyRefuses(t, server.control, "LOADING")
	w.s.SetLoading(true)
	for _, line := range []string{
		"PING", "GET k", "SET k w", "EVAL return(1) 0", "EVALSHA x 0", "CLIENT GETNAME", "SCRIPT EXISTS x", "HELLO x",
		"AUTH x y", "WATCH k", "UNWATCH", "NOSUCH", "GET", "PUBLISH other x", "MULTI", "GET k", "EXEC", "MULTI", "DISCARD",
		"WAIT 0 0", "PTTL k", "RESET",
	} {
		ask("a", line)
	}
	ask("b", "GET k") // subscribed
	eventuallyRefuses(t, server.control, "LOADING")
	if v, err := reloads.read(10 * time.Second); err != nil || v.text != "OK" {
		t.Fatalf("DEBUG RELOAD: %v, %v", v, err)
	}
	w.s.SetLoading(false)
	for _, line := range []string{"PING", "EXISTS k", "SET k w"} {
		ask("a", line)
	}
}
