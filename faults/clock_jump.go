package faults

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// clock-jump sets the wall clock of a server: an administrator, an NTP step, a resumed virtual machine. Redis counts
// leases on that clock: a jump forward ends them at once, a jump back makes them last too long. ZooKeeper counts the
// timeouts of sessions on a monotonic clock, which does not jump.
var clockJumpSpec = Spec{
	Name:      "clock-jump",
	NotOn:     noClocks(),
	Doc:       "moves a server's wall clock forward or back by `amount` until healed.",
	Source:    "Kleppmann 2016: the clock of one Redis node jumps forward",
	Class:     history.FaultSkews,
	Object:    "clock",
	Verb:      "had its clock changed",
	Targets:   []Target{Master, Replica, Behind, Deciding, Node},
	Amount:    &Amount{"how far the clock jumps", defaultJump, -24 * time.Hour, 24 * time.Hour},
	Requires:  cluster.Requirements{Clocks: true},
	Resources: ofEachNode("the clock of "),
	Lacks:     lacksClocks,
	AffectsBack: strings.Join([]string{history.AffectsData, history.AffectsTraffic, history.AffectsDelays,
		history.AffectsMessages, history.AffectsSubscriptions, history.AffectsCommands, history.AffectsClients,
		history.AffectsClockBack}, " "),
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		jump := cmp.Or(env.Amount, defaultJump)
		return setClock(ctx, env, target, cluster.Clock{Offset: jump}, func(ahead time.Duration) bool {
			return (ahead - jump).Abs() < jump.Abs()/2
		})
	},
}

// defaultJump is longer than most leases.
const defaultJump = 30 * time.Second

// noClocks are the topologies whose clocks cannot be set.
func noClocks() map[string]string {
	return map[string]string{cluster.Etcd: "a preloaded library sets clocks, and a Go program such as etcd reads its " +
		"clock without the C library"}
}

func lacksClocks(c cluster.Cluster) string {
	return lacks[cluster.Clocks]("set the clock of a server")(c)
}

// setClock sets the clock of node. shows reports whether a clock that is so far ahead shows the effect.
func setClock(
	ctx context.Context, env Env, node string, clock cluster.Clock, shows func(ahead time.Duration) bool,
) (Injection, error) {
	clocks := env.Cluster.(cluster.Clocks)
	if err := clocks.SetClock(ctx, node, clock); err != nil {
		return nil, err
	}
	return &injection{
		observe: func(ctx context.Context) (string, error) { return clockIsOff(ctx, clocks, node, shows) },
		undo: func(ctx context.Context) (string, error) {
			return "the clock of " + node + " is correct again", clocks.SetClock(ctx, node, cluster.Clock{})
		},
	}, nil
}

// clockIsOff waits until the server itself reports another time.
func clockIsOff(ctx context.Context, c cluster.Clocks, node string, shows func(time.Duration) bool) (string, error) {
	return await(ctx, "another time on "+node, func() (string, bool) {
		ahead, err := c.ReadClock(ctx, node)
		if err != nil || !shows(ahead) {
			return "", false
		}
		off := "ahead of"
		if ahead < 0 {
			off = "behind"
		}
		return fmt.Sprintf("the clock of %s is %s %s true time", node, format.Duration(ahead.Abs()), off), true
	})
}
