package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Bounds of the harness's actions on a server.
const (
	sampleWait = 500 * time.Millisecond
	cleanWait  = 30 * time.Second
)

// Keys are the run's keys at a node with their remaining time to live; see [cluster.Inventory]. Keys of others are
// never read.
func (t *Target) Keys(ctx context.Context, node string) (map[string]time.Duration, error) {
	s, err := t.node(node)
	if err != nil {
		return nil, err
	}
	names, err := t.scan(ctx, s)
	if err != nil {
		return nil, err
	}
	return cluster.TTLs(func(commands ...[]string) ([]any, error) { return s.ask(ctx, commands...) }, names)
}

// scan are the names of the run's keys at a server.
func (t *Target) scan(ctx context.Context, s *server) ([]string, error) {
	one := func(command ...string) (any, error) { return s.one(ctx, command...) }
	names, err := cluster.ScanKeys(one, "*"+t.prefix+"*") // a lock's other keys have its name as hash tag: {NAME}:token
	// A character of the prefix may be a wildcard of the pattern.
	return slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, t.prefix) }), err
}

// RemoveKeys removes the keys of the run from every master and returns their names. It looks again until there are
// none: a request that was on its way may have been executed since.
func (t *Target) RemoveKeys(ctx context.Context) (removed []string, err error) {
	if !cluster.IsPrefix(t.prefix) {
		return nil, fmt.Errorf("only the keys of a run are removed: %q is not the prefix of one", t.prefix)
	}
	for round, found := 0, true; found || round < 2; round++ {
		found = false
		for _, s := range t.nodes {
			names, err := t.removeFrom(ctx, s)
			if err != nil {
				return removed, fmt.Errorf("removing the keys with prefix %s from %s: %w (chaos clean --target URL --prefix %s "+
					"tries again)", t.prefix, s.addr, err, t.prefix)
			}
			removed, found = append(removed, names...), found || len(names) > 0
		}
	}
	slices.Sort(removed)
	return slices.Compact(removed), nil
}

// removeFrom removes the keys of the run from a server, if it is a master.
func (t *Target) removeFrom(ctx context.Context, s *server) ([]string, error) {
	reply, err := s.one(ctx, "ROLE")
	if err != nil {
		return nil, err
	}
	if role, err := cluster.ParseRole(reply); err != nil || role.Name != "master" {
		return nil, err
	}
	names, err := t.scan(ctx, s)
	for _, name := range names {
		_, refused := s.one(ctx, "UNLINK", name)
		err = errors.Join(err, refused)
	}
	return names, err
}
