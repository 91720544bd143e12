package sim

import (
	"context"
	"errors"
	"time"

	"github.com/lockchaos/lockchaos/cluster"
	"github.com/lockchaos/lockchaos/history"
)

// node is a data server.
type node struct {
	host
	disk disk
	slow int64
}

func (n *node) now() time.Time         { return time.Now() }
func (n *node) setClock(cluster.Clock) {}

type disk struct{}

func (disk) powerOff(time.Time) {}
func (disk) wipe()              {}

type sentinel struct{ host }

func (s *sentinel) forceFailover() error { return errPending }

var errPending = errors.New("the simulated servers are not there yet")

func (c *Cluster) build(context.Context) error { return errPending }

// Sample says what node looks like now.
func (c *Cluster) Sample(_ context.Context, node string, _ []string) history.Sample {
	return history.Sample{Node: node}
}

// Keys are the keys of a node.
func (c *Cluster) Keys(context.Context, string) (map[string]time.Duration, error) {
	return nil, errPending
}

// Do answers as go-redis' Cmd does.
func (c *Cluster) Do(context.Context, string, ...any) (any, error) { return nil, errPending }
