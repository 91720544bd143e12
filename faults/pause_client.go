package faults

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// pause-client stops a lock user as a garbage collection, a live migration or a closed laptop does: every goroutine,
// timer and watchdog of that process is stopped while its lease at the server runs. When it resumes it does not know
// that time has passed.
var pauseClientSpec = Spec{
	Name:         "pause-client",
	Doc:          "stops a client's whole process (SIGSTOP), timers and watchdog included, until healed.",
	Source:       "Kleppmann 2016, How to do distributed locking: a stop-the-world pause",
	Targets:      []Target{Holder, Waiter, Client},
	WholeProcess: true,
	Lacks:        lacksNothing,
	Inject: func(_ context.Context, env Env, target string) (Injection, error) {
		n, err := clientOf(target)
		if err != nil {
			return nil, err
		}
		if err := env.Clients.Stop(n); err != nil {
			return nil, fmt.Errorf("stopping client %d: %w", n, err)
		}
		return &injection{observe: already("process stopped"), undo: func(context.Context) (string, error) {
			return fmt.Sprintf("client %d resumed", n), env.Clients.Continue(n)
		}}, nil
	},
}

// clientOf is the number of a target such as client:3.
func clientOf(target string) (int, error) {
	digits, ok := strings.CutPrefix(target, "client:")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is not a client", target)
	}
	return n, nil
}
