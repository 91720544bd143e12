package servers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/docker"
	"github.com/lockchaos/lockchaos/internal/ledger"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Docker is the backend of redis-server in containers on a network of their own; clients are processes as with
// [Process].
func Docker() backend.Spec {
	return backend.Spec{
		Name:    "docker",
		Doc:     "real servers in containers of a Docker engine on this machine, each client a process of its own.",
		Missing: dockerMissing,
		New:     newDockerBackend,
		Flags: func(o backend.Options) []string {
			if o.Image == "" || o.Image == docker.DefaultImage {
				return nil
			}
			return []string{"--docker-image", o.Image}
		},
	}
}

const engineTimeout = 5 * time.Second

func dockerMissing(s scenarios.Scenario) string {
	if !s.Topology.Redis() {
		return "there are no containers for topology " + s.Topology.Kind + "; use backend process"
	}
	if why := missingRequirements(s.Requirements()); why != "" {
		return why
	}
	ctx, cancel := context.WithTimeout(context.Background(), engineTimeout)
	defer cancel()
	if _, err := docker.Version(ctx); err != nil {
		return err.Error()
	}
	return ""
}

type dockerBackend struct {
	*processBackend
	image string
}

func newDockerBackend(o backend.Options) backend.Backend {
	b := &dockerBackend{newProcessBackend(o), o.Image}
	b.facts.Name = "docker"
	return b
}

// Start removes the containers of runs that were killed, and starts new ones.
func (b *dockerBackend) Start(ctx context.Context, e backend.Env) (cluster.Cluster, error) {
	if err := checkLimits(e); err != nil {
		return nil, err
	}
	log := harnessLog(e.Dir)
	swept, err := ledger.Sweep(ctx, docker.Remove)
	_, orphans := docker.RemoveOrphans(ctx)
	failed := func(s ledger.Swept) bool { return len(s.Failed) > 0 }
	if err = errors.Join(err, orphans); log != nil && (err != nil || slices.ContainsFunc(swept.Swept, failed)) {
		log.Warn("removing what killed runs have left", "error", err, "swept", swept)
	}
	c, err := docker.Start(ctx, docker.Config{
		Topology: e.Topology, Requirements: e.Requirements, Image: b.image, Dir: e.Dir.File(rundir.LogsDir),
		Ledger: e.Ledger, Log: log, Stranger: strangersOf(e),
	})
	if err != nil {
		return nil, err
	}
	b.started(e, map[string]string{"redis": c.Version(), "image": c.Image(), "docker": c.Engine()})
	return c, nil
}
