// Package refusals watches whether servers refuse the clients of a run because they have not authenticated. A client
// that does not may try again for ever and report nothing but that it was not granted the lock; the gates see the
// refusals.
package refusals

import (
	"context"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

const (
	lookEvery    = 250 * time.Millisecond
	refusedOften = 3               // refusals and no other reply: the client does not authenticate after the first one
	refusedFor   = 2 * time.Second // since the run began: no client will be granted anything
)

// Watch is about one run. Its clients are real programs: a simulation's are this program's own.
type Watch struct {
	Links   cluster.Links
	Clients int
	Clock   func() time.Duration      // since the run began
	Granted func() bool               // whether any client was granted a lock
	Note    func(caller, text string) // is called with a caller that is refused, more than once
	End     func(error)               // ends the run
}

// Run notes each client that servers refuse for want of a password, until ctx ends. It ends a run in which no client
// has authenticated.
func (w Watch) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			w.note(1)
			return
		case <-ticker.C:
		}
		if n := w.note(refusedOften); n > 0 && w.Clock() > refusedFor && !w.Granted() {
			w.End(fmt.Errorf("%w: no client has authenticated, and servers refused %s (NOAUTH): clients have to "+
				"authenticate with setup.endpoints.password (docs/reference/protocol.md)", cluster.ErrEnvironment,
				format.Count(n, "client")))
			return
		}
	}
}

// note notes the clients that were refused at least that often and got no other reply. It returns their number, or 0 if
// another client got a reply.
func (w Watch) note(often int64) (n int) {
	replies := func(caller string) cluster.Traffic {
		t, err := w.Links.Traffic(cluster.Link{From: caller, To: cluster.Any}, cluster.Back)
		if err != nil {
			return cluster.Traffic{} // a caller that the cluster does not know gets no replies
		}
		return t
	}
	if replies(cluster.Any).Refused < often {
		return 0
	}
	callers := []string{cluster.UnknownClient} // also clients that ignore the source that they were given
	for i := range w.Clients {
		callers = append(callers, cluster.ClientName(i))
	}
	accepted := false
	for _, caller := range callers {
		t := replies(caller)
		if accepted = accepted || t.Accepted; t.Accepted || t.Refused < often {
			continue
		}
		n++
		who := "a client that does not use its source"
		if i, ok := cluster.ClientNumber(caller); ok {
			who = fmt.Sprintf("client %d", i)
		}
		w.Note(caller, who+" was refused by a server (NOAUTH)")
	}
	if accepted {
		return 0
	}
	return n
}
