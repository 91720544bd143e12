package faults

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// pause-client stops a lock user as a garbage collector, a live migration or a
// laptop's lid does: every goroutine, timer and watchdog of that process
// stands still, while its lease at the server runs on. When it goes on it does
// not know that time has passed.
var pauseClientSpec = Spec{
	Name:         "pause-client",
	Doc:          "stops a client's whole process (SIGSTOP), timers and watchdog included, until healed.",
	Source:       "Kleppmann 2016, How to do distributed locking: a stop-the-world pause",
	Targets:      []Target{Holder, Waiter, Client},
	WholeProcess: true,
	Lacks:        noObstacle,
	Inject:       injectPauseClient,
}

type pausedClient struct {
	clients Clients
	client  int
	once    sync.Once
	err     error
}

func injectPauseClient(_ context.Context, env Env, target string) (Injection, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(target, "client:"))
	if err != nil {
		return nil, fmt.Errorf("pausing %q: not a client", target)
	}
	p := &pausedClient{clients: env.Clients, client: n}
	if err := env.Clients.Stop(n); err != nil {
		return nil, fmt.Errorf("pausing client %d: %w", n, err)
	}
	return p, nil
}

// Bite has nothing to wait for: Stop returned when the process stood still.
func (p *pausedClient) Bite(context.Context) (string, error) {
	return fmt.Sprintf("client %d stands still", p.client), nil
}

func (p *pausedClient) Heal(context.Context) (string, error) {
	p.once.Do(func() { p.err = p.clients.Continue(p.client) })
	return fmt.Sprintf("client %d goes on", p.client), p.err
}

// noObstacle is for faults that need nothing of the cluster.
func noObstacle(cluster.Cluster) string { return "" }
