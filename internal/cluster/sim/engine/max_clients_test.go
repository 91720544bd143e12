package engine

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
)

// TestMaxClients compares the limit of connections with a real server's: its values, and the reply to a connection too
// many.
func TestMaxClients(t *testing.T) {
	server := startReal(t)
	conn, err := server.open()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w := newWorld(t)
	simulated := w.open("127.0.0.1:1")
	for _, line := range []string{
		"CONFIG SET maxclients 0", "CONFIG SET maxclients x", "CONFIG SET maxclients 4294967296", "CONFIG SET maxclients 1",
		"CONFIG SET maxclients 3", "CONFIG SET maxclients 2", "PING",
	} {
		fmt.Fprint(conn, line+"\r\n")
		want, err := conn.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if got := simulated.send(line); got != strings.TrimSpace(want) {
			t.Errorf("%s: %q, a real server replies %q", line, got, want)
		}
	}
	w.open("127.0.0.1:2") // as the test's other connection to the real server
	if got := w.s.Refuse(); got != "-ERR max number of clients reached\r\n" {
		t.Errorf("a third connection gets %q", got)
	}
	tooMany, err := server.open()
	if err != nil {
		t.Fatal(err)
	}
	defer tooMany.Close()
	want, err := bufio.NewReader(tooMany).ReadString('\n')
	if err != nil || want != "-ERR max number of clients reached\r\n" {
		t.Errorf("a real server sends %q, %v", want, err)
	}
	if got := simulated.send("INFO stats"); !strings.Contains(got, " rejected_connections:1 ") {
		t.Error(got)
	}
	simulated.send("CONFIG SET maxclients 3")
	if got := w.s.Refuse(); got != "" {
		t.Errorf("below the limit: %q", got)
	}
}
