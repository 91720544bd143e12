package runner

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// notes are observations about clients. Those that come before the history begins are recorded when it does.
type notes struct {
	mu     sync.Mutex
	record *history.Recorder // nil: the history has not begun
	early  []note
}

type note struct{ f, target, detail string }

func (n *notes) add(f, target, detail string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.record == nil {
		n.early = append(n.early, note{f, target, detail})
		return
	}
	n.write(note{f, target, detail})
}

// begin records what came early. Recording ends with end.
func (n *notes) begin(r *history.Recorder) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.record = r
	for _, early := range n.early {
		n.write(early)
	}
	n.early = nil
}

// end drops what comes later.
func (n *notes) end() { n.begin(nil) }

func (n *notes) write(x note) {
	if n.record != nil {
		v := &history.FaultValue{Phase: history.Noted, Target: x.target, Detail: x.detail}
		n.record.Note(history.Nemesis, x.f, "", &history.Value{Fault: v})
	}
}

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

// strangers is what the gates call for connections from unknown addresses.
func (e RunEnv) strangers() func(from, gate netip.AddrPort, to string) {
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

// authenticated is c, with a note if a server refuses it because it did not authenticate.
func (s *stage) authenticated(c client.Client, i int) client.Client {
	return &authenticatedClient{Client: c, refused: func(reason string) {
		s.notes.add(history.NoPassword, cluster.ClientName(i), fmt.Sprintf("client %d was refused by a server (%s): "+
			"it has to authenticate with setup.endpoints.password (docs/reference/protocol.md)", i, reason))
	}}
}

// authenticatedClient is a client whose first refusal for want of a password is reported.
type authenticatedClient struct {
	client.Client
	refused func(reason string)
	once    sync.Once
}

// Do implements [client.Client].
func (c *authenticatedClient) Do(ctx context.Context, r client.Request) (client.Reply, error) {
	reply, err := c.Client.Do(ctx, r)
	for _, reason := range []string{"NOAUTH", "WRONGPASS"} { // of Redis
		if err == nil && strings.Contains(reply.Error, reason) {
			c.once.Do(func() { c.refused(reason) })
		}
	}
	return reply, err
}

// Err is why the client ended, if it says so.
func (c *authenticatedClient) Err() error {
	if ended, ok := c.Client.(interface{ Err() error }); ok {
		return ended.Err()
	}
	return nil
}

// killWait bounds the end of one process that a client has left behind.
const killWait = 5 * time.Second

// endLeftProcesses kills the processes that clients have started and that outlived them, and notes each.
func (s *stage) endLeftProcesses() {
	left := s.run.records.ledger.ClientProcesses()
	for _, i := range slices.Sorted(maps.Keys(left)) {
		for _, m := range left[i] {
			ctx, cancel := context.WithTimeout(context.Background(), killWait)
			killed, err := m.Kill(ctx)
			cancel()
			how := "and was killed"
			if err != nil {
				how = "and could not be killed: " + err.Error()
			}
			if killed || err != nil {
				s.notes.add(history.ProcessLeft, cluster.ClientName(i), fmt.Sprintf(
					"process %d (%s), which client %d had started, outlived it %s", m.PID, m.Name, i, how))
			}
		}
	}
}
