package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// command is a fault that is one command of an operator. It is retried until it has had an effect: there may be nothing
// to break yet. There is nothing to heal.
type command struct {
	node string
	do   func(ctx context.Context) (effect string, done bool, err error)

	// turn is held while the command is executed and while its fields are used. It is not a mutex: virtual time does
	// not pass while a goroutine waits for a mutex, and it is held while the server is asked.
	turn   chan struct{}
	effect string // of the first time that it did something; "": it has not yet
	healed bool
}

// breaking applies such a fault to a node, given the names of the locks, and returns the effect, and whether there was
// one.
type breaking func(ctx context.Context, a cluster.Admin, node string, locks []string) (string, bool, error)

// commandFault completes a row of such a fault.
func commandFault(do breaking, s Spec) Spec {
	s.OneShot = true
	s.Lacks = lacksAdmin
	s.Inject = func(_ context.Context, env Env, target string) (Injection, error) {
		return newCommand(target, func(ctx context.Context) (string, bool, error) {
			return do(ctx, env.Cluster.(cluster.Admin), target, env.Keys)
		}), nil
	}
	return s
}

func newCommand(node string, do func(ctx context.Context) (string, bool, error)) *command {
	return &command{node: node, do: do, turn: make(chan struct{}, 1)}
}

func (c *command) Observe(ctx context.Context) (string, error) {
	return await(ctx, "anything to break on "+c.node, func() (string, bool) {
		c.turn <- struct{}{}
		defer func() { <-c.turn }()
		if c.effect == "" && !c.healed {
			if effect, done, err := c.do(ctx); err == nil && done {
				c.effect = effect
			}
		}
		return c.effect, c.effect != ""
	})
}

// Heal prevents the command from being executed later.
func (c *command) Heal(ctx context.Context) (string, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-c.turn }()
	c.healed = true
	return nothingToUndo(ctx)
}

// undoneBy is the command as a fault in force, which ends when undo has undone it.
func (c *command) undoneBy(undo func(ctx context.Context) (how string, err error)) *injection {
	return &injection{observe: c.Observe, undo: func(ctx context.Context) (string, error) {
		if _, err := c.Heal(ctx); err != nil {
			return "", err
		}
		return undo(ctx)
	}}
}

// number runs a command whose reply is a number; 0 for any other reply.
func number(ctx context.Context, a cluster.Admin, node string, args ...any) (int64, error) {
	reply, err := a.Do(ctx, node, args...)
	n, _ := reply.(int64)
	return n, err
}
