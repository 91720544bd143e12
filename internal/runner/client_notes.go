package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// notes are observations about clients. Those that come before the history begins are recorded when it does.
type notes struct {
	mu     sync.Mutex
	record *history.Recorder // nil: the history has not begun
	early  []note
	once   map[note]bool // without details
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

// addOnce is add, but only for the first note of that name about a target.
func (n *notes) addOnce(f, target, detail string) {
	n.mu.Lock()
	known := n.once[note{f: f, target: target}]
	if n.once == nil {
		n.once = map[note]bool{}
	}
	n.once[note{f: f, target: target}] = true
	n.mu.Unlock()
	if !known {
		n.add(f, target, detail)
	}
}

// begin records early notes. Recording ends with end.
func (n *notes) begin(r *history.Recorder) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.record = r
	for _, early := range n.early {
		n.write(early)
	}
	n.early = nil
}

// end drops later notes.
func (n *notes) end() { n.begin(nil) }

func (n *notes) write(x note) {
	if n.record != nil {
		v := &history.FaultValue{Phase: history.Noted, Target: x.target, Detail: x.detail}
		n.record.Note(history.Nemesis, x.f, "", &history.Value{Fault: v})
	}
}

// authenticated is c, with a note if a server refuses it because it did not authenticate.
func (s *stage) authenticated(c client.Client, i int) client.Client {
	return &authenticatedClient{Client: c, refused: func(reason string) {
		s.noPassword(cluster.ClientName(i), fmt.Sprintf("client %d was refused by a server (%s)", i, reason))
	}}
}

// noPassword notes once that a server has refused a client, or callers that are not known.
func (s *stage) noPassword(name, text string) {
	s.notes.addOnce(history.NoPassword, name, text+": it has to authenticate with setup.endpoints.password "+
		"(docs/reference/protocol.md)")
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
