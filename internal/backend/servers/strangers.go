package servers

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// maxStrangers is how many connections are looked into, each of which takes some milliseconds.
const maxStrangers = 100

// strangers identifies the programs whose connections come from an address that the run has given to no client.
type strangers struct {
	ledger *ledger.Ledger
	add    func(f, target, detail string)

	mu    sync.Mutex
	seen  int
	named map[string]bool
}

// strangersOf returns the callback of the gates for connections from unknown addresses; nil if the run records no
// notes.
func strangersOf(e backend.Env) func(from, gate netip.AddrPort, to string) {
	if e.Note == nil {
		return nil
	}
	s := &strangers{ledger: e.Ledger, add: e.Note, named: map[string]bool{}}
	return s.see
}

// see notes each client that ignores its source, once. The owner of the connection is found by the mark in its
// environment.
func (s *strangers) see(from, gate netip.AddrPort, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen++; s.seen > maxStrangers {
		return
	}
	who, target := "a program that could not be identified", "client:?"
	if i, ok := s.ledger.ClientAt(from, gate); ok {
		who, target = fmt.Sprintf("client %d", i), cluster.ClientName(i)
	}
	if s.named[target] {
		return
	}
	s.named[target] = true
	text := fmt.Sprintf("%s connected to %s from %s", who, to, from.Addr())
	if target != "client:?" {
		text += ", not from the source that it was given: faults of its connections do not affect it"
	}
	s.add(history.SourceIgnored, target, text)
}
