package faults

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// clock-jump sets the wall clock of a server: an administrator, an NTP step, a
// virtual machine that was resumed. Redis counts leases on that clock: forwards
// they end at once, backwards they last too long.
var clockJumpSpec = Spec{
	Name:      "clock-jump",
	Doc:       "sets a server's wall clock forwards or back (amount) until healed.",
	Source:    "Kleppmann 2016: a clock of one Redis node jumps forward",
	Targets:   []Target{Master, Replica, Behind, Deciding, Node},
	Amount:    &Amount{"how far the clock jumps", usualJump, -24 * time.Hour, 24 * time.Hour},
	Requires:  cluster.Requirements{Clocks: true},
	Resources: wallClock,
	Lacks:     func(c cluster.Cluster) string { return can[cluster.Clocks](c, "set the clock of a server") },
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		jump := cmp.Or(env.Amount, usualJump)
		return setClock(ctx, env, target, cluster.Clock{Offset: jump}, func(ahead time.Duration) bool {
			return (ahead - jump).Abs() < jump.Abs()/2
		})
	},
}

// usualJump is longer than most leases.
const usualJump = 30 * time.Second

// offClock is a server whose clock is not true.
type offClock struct {
	cluster cluster.Cluster
	node    string
	off     func(ahead time.Duration) bool // says that it shows
	once    sync.Once
	err     error
}

func setClock(
	ctx context.Context, env Env, node string, c cluster.Clock, off func(time.Duration) bool,
) (Injection, error) {
	if err := env.Cluster.(cluster.Clocks).SetClock(ctx, node, c); err != nil {
		return nil, err
	}
	return &offClock{cluster: env.Cluster, node: node, off: off}, nil
}

// Bite waits until the server itself tells another time. A backend in which
// nobody can ask has only its word that the clock was set.
func (o *offClock) Bite(ctx context.Context) (string, error) {
	admin, ok := o.cluster.(cluster.Admin)
	if !ok {
		return "the clock of " + o.node + " was set", nil
	}
	return await(ctx, "another time at "+o.node, func() (string, bool) {
		ahead, err := aheadOf(ctx, admin, o.node)
		if err != nil || !o.off(ahead) {
			return "", false
		}
		return fmt.Sprintf("the clock of %s is %v ahead of true time", o.node, ahead.Round(time.Millisecond)), true
	})
}

// aheadOf is how far the clock of node is ahead of this program's.
func aheadOf(ctx context.Context, a cluster.Admin, node string) (time.Duration, error) {
	reply, err := a.Do(ctx, node, "TIME")
	if err != nil {
		return 0, err
	}
	var seconds, micros int64
	words, _ := reply.([]any)
	if len(words) != 2 {
		return 0, fmt.Errorf("reading the time of %s: %v is none", node, reply)
	}
	if _, err := fmt.Sscan(fmt.Sprint(words[0], " ", words[1]), &seconds, &micros); err != nil {
		return 0, fmt.Errorf("reading the time of %s: %w", node, err)
	}
	return time.Unix(seconds, micros*1000).Sub(time.Now().Round(0)), nil
}

func (o *offClock) Heal(ctx context.Context) (string, error) {
	o.once.Do(func() { o.err = o.cluster.(cluster.Clocks).SetClock(ctx, o.node, cluster.Clock{}) })
	return "the clock of " + o.node + " is true again", o.err
}
