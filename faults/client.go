package faults

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/history"
)

// clientFault completes a row that acts on a client's process.
func clientFault(
	s Spec, effect string, act func(c Clients, client int) error,
	undo func(ctx context.Context, c Clients, client int) (string, error),
) Spec {
	s.Targets = []Target{Holder, Waiter, Client}
	s.WholeProcess = true
	s.Affects = history.AffectsClients
	s.Lacks = lacksNothing
	s.Inject = func(_ context.Context, env Env, target string) (Injection, error) {
		client, err := clientOf(target)
		if err != nil {
			return nil, err
		}
		if err := act(env.Clients, client); err != nil {
			return nil, fmt.Errorf("%s %s: %w", s.Name, target, err)
		}
		return &injection{observe: already(effect), undo: func(ctx context.Context) (string, error) {
			return undo(ctx, env.Clients, client)
		}}, nil
	}
	return s
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
