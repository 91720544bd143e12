package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// adminFault is a fault that commands of an operator put in force and undo, and whose effect the server counts.
type adminFault struct {
	// set puts the fault in force on a node and returns the command that undoes it.
	set    func(ctx context.Context, a cluster.Admin, node string) (undo []any, err error)
	count  func(ctx context.Context, a cluster.Admin, node string) (int, error)
	noun   string // what count counts, in the singular
	healed string
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
		var undo []func(context.Context) error
		in := &injection{
			observe: func(ctx context.Context) (string, error) {
				return await(ctx, "any "+f.noun, func() (string, bool) {
					now, err := f.total(ctx, a, nodes)
					return format.Count(now-before, f.noun), err == nil && now > before
				})
			},
			undo: func(ctx context.Context) (string, error) {
				var errs []error
				for _, do := range undo {
					errs = append(errs, do(ctx))
				}
				return f.healed, errors.Join(errs...)
			},
		}
		for _, node := range nodes {
			command, err := f.set(ctx, a, node)
			if err != nil {
				_, _ = in.Heal(ctx) // the caller gets no Injection to heal
				return nil, fmt.Errorf("%s on %s: %w", s.Name, node, err)
			}
			undo = append(undo, func(ctx context.Context) error {
				_, err := a.Do(ctx, node, command...)
				return err
			})
		}
		return in, nil
	}
	return s
}

func (f adminFault) total(ctx context.Context, a cluster.Admin, nodes []string) (sum int, err error) {
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
