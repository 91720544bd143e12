package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// watch asks after the engine until the cluster closes.
func (g *launcher) watch() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	missed := 0
	for {
		select {
		case <-g.closing:
			return
		case <-tick.C:
		}
		err := g.engine.ping(context.Background())
		if err == nil {
			missed = 0
			continue
		}
		if missed++; missed < pingTries {
			continue
		}
		g.mu.Lock()
		gone := &EngineError{Host: g.engine.DaemonHost(), Err: err}
		g.failure = fmt.Errorf("%w: the Docker engine does not answer any more: %s: start it again, "+
			"then chaos clean removes the containers", cluster.ErrEnvironment, gone.Short())
		g.mu.Unlock()
		close(g.failed)
		return
	}
}

// err is why the engine is gone, nil if it is not.
func (g *launcher) err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failure
}

// stopWatching says that the cluster closes.
func (g *launcher) stopWatching() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		close(g.closing)
	}
}

// explain adds to what went wrong with a start what it is probably about.
func (g *launcher) explain(err error) error {
	if failed := g.engine.ping(context.Background()); failed != nil {
		return fmt.Errorf("%w: %w", &EngineError{Host: g.engine.DaemonHost(), Err: failed}, err)
	}
	if errors.Is(err, context.DeadlineExceeded) && g.gateway.IsValid() {
		return fmt.Errorf("%w (containers of %v must reach this machine at %v: a firewall may be in the way)",
			err, g.subnet, g.gateway)
	}
	return err
}

// clear removes every container and the network, for another try or for good.
func (g *launcher) clear() error {
	wait := callWait
	if g.err() != nil {
		wait = pingWait // it may be back
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if _, err := g.engine.remove(ctx, labelled(runLabel, g.run)); err != nil {
		return fmt.Errorf("removing the containers of run %s: %w", g.run, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.servers)
	return nil
}

// close is the end of the launcher. Without an engine the servers are ended all the
// same, and what only an engine can remove is left to a sweep.
func (g *launcher) close() error {
	g.stopWatching()
	defer g.engine.Client.Close()
	err := g.clear()
	if err == nil {
		return nil
	}
	g.ledger.Keep()
	if why := g.err(); why != nil {
		err = why // it says more than what the last call met
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	errs := []error{err}
	for _, b := range g.servers { // order does not matter: all of them
		errs = append(errs, b.killDirectly())
	}
	return errors.Join(errs...)
}

// remove removes what filters select, containers first: a network that is in use
// stays. It says what it has removed.
func (e *engine) remove(ctx context.Context, filters client.Filters) (removed []string, err error) {
	containers, err := e.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, c := range containers.Items {
		_, err := e.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, "container "+nameOr(c.Names, c.ID))
	}
	networks, err := e.NetworkList(ctx, client.NetworkListOptions{Filters: filters})
	if err != nil {
		return removed, errors.Join(append(errs, err)...)
	}
	for _, n := range networks.Items {
		if _, err := e.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{}); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, "network "+n.Name)
	}
	return removed, errors.Join(errs...)
}

func nameOr(names []string, id string) string {
	if len(names) > 0 && len(names[0]) > 1 {
		return names[0][1:] // the engine writes a slash before it
	}
	return id
}
