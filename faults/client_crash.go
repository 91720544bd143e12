package faults

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// client-crash ends a lock user for good: whatever it held is given back by
// nobody, and must come free with its lease. Its watchdog dies with it.
var clientCrashSpec = Spec{
	Name:         "client-crash",
	Doc:          "ends a client's process at once (SIGKILL); nothing starts it again.",
	Source:       "redis.io, Distributed Locks, liveness property A: locks of crashed clients come free",
	Targets:      []Target{Holder, Waiter, Client},
	OneShot:      true,
	WholeProcess: true,
	Lacks:        noObstacle,
	Inject: func(_ context.Context, env Env, target string) (Injection, error) {
		n, err := strconv.Atoi(strings.TrimPrefix(target, "client:"))
		if err != nil {
			return nil, fmt.Errorf("crashing %q: not a client", target)
		}
		if err := env.Clients.Crash(n); err != nil {
			return nil, fmt.Errorf("crashing client %d: %w", n, err)
		}
		return crashed(n), nil
	},
}

// crashed is a client that is gone.
type crashed int

// Bite has nothing to wait for: Crash returned when the process was gone.
func (c crashed) Bite(context.Context) (string, error) {
	return fmt.Sprintf("client %d is dead", int(c)), nil
}

// Heal leaves it dead: a process that is started again is another client.
func (c crashed) Heal(context.Context) (string, error) { return "it stays dead", nil }
