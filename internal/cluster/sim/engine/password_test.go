package engine

import (
	"strings"
	"testing"
	"time"
)

// TestPassword compares a server that has a password with a real one: every line is a reply to a command of one
// connection.
func TestPassword(t *testing.T) {
	server := startReal(t)
	if _, err := server.control.ask("CONFIG", "SET", "requirepass", "p"); err != nil {
		t.Fatal(err)
	}
	conn, err := server.open()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := New(Config{Now: time.Now, Password: "p"})
	var got strings.Builder
	simulated := s.Open("127.0.0.1:1", func(p []byte) { got.Write(p) })
	for _, line := range []string{
		"PING", "GET k", "EVAL return(1) 0", "MULTI", "HELLO", "HELLO 3", "HELLO 3 AUTH default q", "HELLO 2 SETNAME x",
		"AUTH q", "AUTH other p", "AUTH default q", "AUTH a b c", "AUTH", "NOSUCH", "GET", "AUTH p", "PING", "AUTH q",
		"PING", "RESET", "PING", "AUTH default p", "SET k v", "RESET", "HELLO 2 AUTH other p", "GET k", "QUIT",
	} {
		words := strings.Fields(line)
		if _, err := conn.Write(encode(words)); err != nil {
			t.Fatal(err)
		}
		want, err := conn.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		got.Reset()
		simulated.Feed(encode(words))
		if got.String() != want {
			t.Errorf("%s: %q, a real server replies %q", line, got.String(), want)
		}
	}
	hello := s.Open("127.0.0.1:2", func(p []byte) { got.Write(p) })
	got.Reset()
	hello.Feed(encode([]string{"HELLO", "3", "AUTH", "default", "p"}))
	hello.Feed(encode([]string{"GET", "k"}))
	if !strings.HasPrefix(got.String(), "%7\r\n") || !strings.HasSuffix(got.String(), "$1\r\nv\r\n") {
		t.Errorf("after HELLO with the password: %q", got.String())
	}
}
