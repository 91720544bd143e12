package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// adminFault is a fault that an operator's commands inject and undo, and whose effect the server counts.
type adminFault struct {
	// set puts the fault in force on a node and returns the function that undoes it.
	set func(ctx context.Context, a cluster.Admin, node string, env Env) (undo undoing, err error)
	// count reads the server's counter; nil: the effect, noun, is certain.
	count  func(ctx context.Context, a cluster.Admin, node string) (int, error)
	noun   string // the unit of count, in the singular
	healed string
}

// undoing undoes a fault on one node.
type undoing func(ctx context.Context) error

// undoneBy undoes a fault by a command.
func undoneBy(a cluster.Admin, node string, command ...any) undoing {
	return func(ctx context.Context) error {
		return settle(ctx, func() (bool, error) { // another fault may keep the server from replying
			_, err := a.Do(ctx, node, command...)
			return err == nil, err
		})
	}
}

// spec completes a row.
func (f adminFault) spec(s Spec) Spec {
	s.Targets = []Target{Master, Deciding, Node, Nodes, Minority, Majority}
	s.Lacks = lacksAdmin
	s.Inject = func(ctx context.Context, env Env, target string) (Injection, error) {
		a, nodes := env.Cluster.(cluster.Admin), nodesOf(target)
		before, err := f.total(ctx, a, nodes)
		if err != nil {
			return nil, err
		}
		var undo []undoing
		in := &injection{
			observe: already(f.noun),
			undo: func(ctx context.Context) (string, error) {
				var errs []error
				for _, do := range undo {
					errs = append(errs, do(ctx))
				}
				return f.healed, errors.Join(errs...)
			},
		}
		if f.count != nil {
			in.observe = awaitMore("any "+f.noun, f.noun, before,
				func(ctx context.Context) (int, error) { return f.total(ctx, a, nodes) })
		}
		for _, node := range nodes {
			one, err := f.set(ctx, a, node, env)
			if one != nil {
				undo = append(undo, one)
			}
			if err != nil {
				return in.started(ctx, fmt.Errorf("%s on %s: %w", s.Name, node, err))
			}
		}
		return in, nil
	}
	return s
}

func (f adminFault) total(ctx context.Context, a cluster.Admin, nodes []string) (sum int, err error) {
	if f.count == nil {
		return 0, nil
	}
	for _, node := range nodes {
		n, err := f.count(ctx, a, node)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// errorReplies counts the error replies of a server that start with that code.
func errorReplies(code string) func(context.Context, cluster.Admin, string) (int, error) {
	return func(ctx context.Context, a cluster.Admin, node string) (int, error) {
		return infoNumber(ctx, a, node, "errorstats", "errorstat_"+code+":count=")
	}
}

// infoNumber is the number after a text in a section of INFO; 0 if the text is not there.
func infoNumber(ctx context.Context, a cluster.Admin, node, section, text string) (n int, err error) {
	reply, err := a.Do(ctx, node, "INFO", section)
	if err != nil {
		return 0, err
	}
	if _, rest, found := strings.Cut(fmt.Sprint(reply), text); found {
		_, err = fmt.Sscan(rest, &n)
	}
	return n, err
}

// settings is the command that restores the present settings of a server.
func settings(ctx context.Context, a cluster.Admin, node string, names ...string) (restore []any, err error) {
	restore = []any{"CONFIG", "SET"}
	for _, name := range names {
		reply, err := a.Do(ctx, node, "CONFIG", "GET", name)
		if err != nil {
			return nil, err
		}
		pair, _ := reply.([]any) // name and value
		restore = append(restore, pair...)
	}
	return restore, nil
}
