package faults

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// injection is an Injection made of two functions; undo is called once.
type injection struct {
	observe func(ctx context.Context) (effect string, err error)
	undo    func(ctx context.Context) (how string, err error)

	once sync.Once
	how  string
	err  error
}

// undoLimit bounds the recovery of servers after an injection that failed.
const undoLimit = 15 * time.Second

// recovery is the context in which an injection that failed is undone: the reason may be that ctx has ended.
func recovery(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
}

// started returns the injection. If it failed, its effects so far are undone, because the caller gets no Injection to
// heal.
func (i *injection) started(ctx context.Context, err error) (Injection, error) {
	if err == nil {
		return i, nil
	}
	undo, cancel := recovery(ctx)
	defer cancel()
	_, _ = i.Heal(undo)
	return nil, err
}

func (i *injection) Observe(ctx context.Context) (string, error) { return i.observe(ctx) }

func (i *injection) Heal(ctx context.Context) (string, error) {
	i.once.Do(func() { i.how, i.err = i.undo(ctx) })
	return i.how, i.err
}

// already is the observation of an effect that was certain when Inject returned.
func already(effect string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return effect, nil }
}

func nothingToUndo(context.Context) (string, error) { return history.NothingToUndo, nil }

// pollEvery is the interval at which an effect is looked for.
const pollEvery = 2 * time.Millisecond

// await polls seen until it describes the effect, or ctx ends.
func await(ctx context.Context, what string, seen func() (string, bool)) (string, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if effect, ok := seen(); ok {
			return effect, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("%s was not observed: %w", what, ctx.Err())
		}
	}
}

// awaitMore observes that a count has grown; noun is its unit, in the singular.
func awaitMore(
	what, noun string, before int, count func(context.Context) (int, error),
) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return await(ctx, what, func() (string, bool) {
			now, err := count(ctx)
			return format.Count(now-before, noun), err == nil && now > before
		})
	}
}

// The roles that servers report.
const (
	roleMaster  = "master"
	roleReplica = "slave"
)

// awaitRole observes an effect in which nodes are in that role. The nodes themselves are asked: the belief of Sentinel
// or of a client is part of the test.
func awaitRole(
	c cluster.Cluster, role, what string, seen func(nodes []string) (string, bool),
) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return await(ctx, what, func() (string, bool) { return seen(withRole(sampleAll(ctx, c), role)) })
	}
}

// awaitNodeIn observes that node is in that role.
func awaitNodeIn(c cluster.Cluster, role, node, effect string) func(context.Context) (string, error) {
	return awaitRole(c, role, effect, func(nodes []string) (string, bool) {
		return effect, slices.Contains(nodes, node)
	})
}

// withRole names the nodes that report that role.
func withRole(samples []history.Sample, role string) (nodes []string) {
	for _, s := range samples {
		if s.Up && s.Role == role {
			nodes = append(nodes, s.Node)
		}
	}
	return nodes
}

// sampleAll samples every node; nothing on a backend that cannot.
func sampleAll(ctx context.Context, c cluster.Cluster) []history.Sample {
	w, ok := c.(cluster.Witness)
	if !ok {
		return nil
	}
	samples := make([]history.Sample, 0, len(c.Nodes()))
	for _, n := range c.Nodes() {
		samples = append(samples, w.Sample(ctx, n.Name, nil))
	}
	return samples
}

// responds reports whether node replies to a sample.
func responds(ctx context.Context, c cluster.Cluster, node string) bool {
	w, ok := c.(cluster.Witness)
	return ok && w.Sample(ctx, node, nil).Up
}
