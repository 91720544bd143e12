package faults

import (
	"cmp"
	"context"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// clock-drift has the wall clock of a server gain or lose time: a bad quartz,
// a virtual machine that is starved. The drift that a lock reckons with is a
// hundredth at most; this is how it is when there is more.
var clockDriftSpec = Spec{
	Name:      "clock-drift",
	Doc:       "has a server's wall clock gain or lose time (amount, in every second) until healed.",
	Source:    "redis.io, Distributed Locks: CLOCK_DRIFT and the assumption of a bounded rate",
	Targets:   []Target{Master, Replica, Behind, Deciding, Node},
	Amount:    &Amount{"what the clock gains in each second", usualDrift, -900 * time.Millisecond, time.Minute},
	Requires:  cluster.Requirements{Clocks: true},
	Resources: wallClock,
	Lacks:     func(c cluster.Cluster) string { return can[cluster.Clocks](c, "set the clock of a server") },
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		rate := cmp.Or(env.Amount, usualDrift)
		return setClock(ctx, env, target, cluster.Clock{Drift: rate.Seconds()}, func(ahead time.Duration) bool {
			return ahead.Abs() > driftShown && (ahead > 0) == (rate > 0)
		})
	},
}

// driftShown is how far a clock has to be off before that is called a drift.
const driftShown = 20 * time.Millisecond

// usualDrift is far more than the hundredth that locks reckon with.
const usualDrift = 500 * time.Millisecond
