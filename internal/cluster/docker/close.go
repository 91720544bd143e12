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

// watch pings the engine until the cluster closes.
func (l *launcher) watch() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	missed := 0
	for {
		select {
		case <-l.open.Done():
			return
		case <-tick.C:
		}
		err := l.engine.ping(context.Background())
		if err == nil {
			missed = 0
			continue
		}
		if missed++; missed < pingTries {
			continue
		}
		lost := &EngineError{Host: l.engine.DaemonHost(), Err: err}
		l.lose(fmt.Errorf("%w: lost the Docker engine: %s: restart it, then remove the containers with chaos clean",
			cluster.ErrEnvironment, lost.Short()))
		return
	}
}

// err is why the engine was lost, nil if it was not.
func (l *launcher) err() error { return context.Cause(l.alive) }

// explain adds the probable cause of a failed start.
func (l *launcher) explain(err error) error {
	if failed := l.engine.ping(context.Background()); failed != nil {
		return fmt.Errorf("%w: %w", &EngineError{Host: l.engine.DaemonHost(), Err: failed}, err)
	}
	if errors.Is(err, context.DeadlineExceeded) && l.gateway.IsValid() {
		return fmt.Errorf("%w (containers of %v must reach this machine at %v: is there a firewall?)",
			err, l.subnet, l.gateway)
	}
	return err
}

// clear removes every container and the network.
func (l *launcher) clear() error {
	wait := callWait
	if l.err() != nil {
		wait = pingWait // it may have been restarted
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if _, err := l.engine.remove(ctx, labeled(runLabel, l.run)); err != nil {
		return fmt.Errorf("removing the containers of run %s: %w", l.run, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.servers)
	return nil
}

// close removes everything. If the engine was lost it still kills the servers, and
// leaves the containers to a sweep.
func (l *launcher) close() error {
	l.stopWatching()
	defer l.engine.Client.Close()
	err := l.clear()
	if err == nil {
		return nil
	}
	l.ledger.Keep()
	if why := l.err(); why != nil {
		err = why // more helpful than the error of the last call
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := []error{err}
	for _, s := range l.servers { // order does not matter: all of them
		errs = append(errs, s.killDirectly())
	}
	return errors.Join(errs...)
}

// removeTries: the engine fails to remove a container that exits between its look at it and its kill ("is not
// running"). Asked again, it removes it.
const removeTries = 3

// removeContainer removes a container, running or not. It returns nil if there is none.
func (e *engine) removeContainer(ctx context.Context, id string) (err error) {
	for range removeTries {
		_, err = e.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || errdefs.IsNotFound(err) {
			return nil
		}
	}
	return err
}

// remove removes the objects that filters select and returns the names. Containers are first: a network in use cannot
// be removed.
func (e *engine) remove(ctx context.Context, filters client.Filters) (removed []string, err error) {
	containers, err := e.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, c := range containers.Items {
		if err := e.removeContainer(ctx, c.ID); err != nil {
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
		return names[0][1:] // without the engine's leading slash
	}
	return id
}
