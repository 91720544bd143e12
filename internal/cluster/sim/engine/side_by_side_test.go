package engine

import (
	"fmt"
	"testing"
)

// sideBySide are connections to a real server and to a simulated one, by name.
type sideBySide struct {
	t         *testing.T
	conns     map[string]*realConn
	simulated map[string]*user
}

// openSideBySide opens a connection of each name to both servers.
func openSideBySide(t *testing.T, server *realServer, w *world, names ...string) sideBySide {
	t.Helper()
	s := sideBySide{t, map[string]*realConn{}, map[string]*user{}}
	for _, name := range names {
		conn, err := server.open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		s.conns[name], s.simulated[name] = conn, w.open("127.0.0.1:1")
	}
	return s
}

// compare sends a line to the simulated server and compares its reply with the real one's.
func (s sideBySide) compare(name, line string, want []byte) {
	s.t.Helper()
	s.simulated[name].Feed([]byte(line + "\r\n"))
	if got := s.simulated[name].got.String(); got != string(want) {
		s.t.Errorf("%s: %s: %q, a real server replies %q", name, line, got, want)
	}
	s.simulated[name].got.Reset()
}

// ask sends a line to both servers and compares the replies, which are one line.
func (s sideBySide) ask(name, line string) {
	s.t.Helper()
	fmt.Fprint(s.conns[name], line+"\r\n")
	want, err := s.conns[name].r.ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	s.compare(name, line, []byte(want))
}
