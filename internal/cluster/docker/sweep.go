package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moby/moby/client"

	"github.com/lockchaos/lockchaos/internal/ledger"
)

// Remove removes the containers and networks of a dead run from the engine at host,
// and returns their names; see [ledger.Sweep].
func Remove(ctx context.Context, host, run string) (removed []string, err error) {
	e, err := dial(ctx, host)
	if err != nil {
		return nil, err
	}
	defer e.Client.Close()
	ctx, cancel := context.WithTimeout(ctx, 3*callWait)
	defer cancel()
	removed, err = e.remove(ctx, labeled(runLabel, run))
	if err != nil {
		return removed, fmt.Errorf("removing the containers of run %s: %w", run, err)
	}
	return removed, nil
}

// RemoveOrphans removes containers and networks of runs of this user on this machine
// whose ledger no longer exists, for example because the temporary directory was emptied.
// It is no error if there is no engine.
func RemoveOrphans(ctx context.Context) (removed []string, err error) {
	e, err := dial(ctx, "")
	if missing := (*EngineError)(nil); errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer e.Client.Close()
	ctx, cancel := context.WithTimeout(ctx, 3*callWait)
	defer cancel()
	runs, err := e.orphans(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for orphaned containers: %w", err)
	}
	for _, run := range runs {
		more, err := e.remove(ctx, labeled(runLabel, run))
		removed = append(removed, more...)
		if err != nil {
			return removed, fmt.Errorf("removing the containers of run %s: %w", run, err)
		}
	}
	return removed, nil
}

// orphans are the runs that have objects at the engine, but whose ledger in this
// user's directory no longer exists: a run removes its ledger last.
func (e *engine) orphans(ctx context.Context) ([]string, error) {
	mine := labeled(machineLabel, machine())
	containers, err := e.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: mine})
	if err != nil {
		return nil, err
	}
	networks, err := e.NetworkList(ctx, client.NetworkListOptions{Filters: mine})
	if err != nil {
		return nil, err
	}
	all := make([]map[string]string, 0, len(containers.Items)+len(networks.Items))
	for _, c := range containers.Items {
		all = append(all, c.Labels)
	}
	for _, n := range networks.Items {
		all = append(all, n.Labels)
	}
	var runs []string
	seen := map[string]bool{"": true}
	for _, labels := range all {
		run, path := labels[runLabel], labels[ledgerLabel]
		if seen[run] || filepath.Dir(path) != ledger.Root() {
			continue
		}
		seen[run] = true
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			runs = append(runs, run)
		}
	}
	return runs, nil
}
