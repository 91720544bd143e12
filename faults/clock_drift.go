package faults

import (
	"cmp"
	"context"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// clock-drift makes the wall clock of a server run fast or slow: a bad quartz, a starved virtual machine. Locks allow
// for a drift of 1% at most; this fault exceeds it.
var clockDriftSpec = Spec{
	Name:      "clock-drift",
	NotOn:     noClocks(),
	Doc:       "makes a server's wall clock gain or lose `amount` every second until healed.",
	Source:    "redis.io, Distributed Locks: CLOCK_DRIFT and the assumption of a bounded rate",
	Class:     history.FaultSkews,
	Object:    history.ObjectRate,
	Verb:      "had its clock changed",
	Targets:   []Target{Master, Replica, Behind, Deciding, Node},
	Amount:    &Amount{"what the clock gains each second", defaultDrift, -900 * time.Millisecond, time.Minute},
	Requires:  cluster.Requirements{Clocks: true},
	Resources: ofEachNode("the clock of "),
	Lacks:     lacksClocks,
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		rate := cmp.Or(env.Amount, defaultDrift)
		return setClock(ctx, env, target, cluster.Clock{Drift: rate.Seconds()}, func(ahead time.Duration) bool {
			return ahead.Abs() > driftShown && (ahead > 0) == (rate > 0)
		})
	},
}

// driftShown is how far a clock has to be off to show a drift.
const driftShown = 20 * time.Millisecond

// defaultDrift is far more than the 1% that locks allow for.
const defaultDrift = 500 * time.Millisecond
