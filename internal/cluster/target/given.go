package target

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/lockchaos/lockchaos/topology"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/gate"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

// Given is servers of any kind that run already and the gates in front of them; or no server. Nothing is known of the
// servers but their addresses, and the harness itself sends them nothing.
type Given struct {
	fronts
	topology cluster.Topology
}

var (
	_ cluster.Cluster = (*Given)(nil)
	_ cluster.Links   = (*Given)(nil)
	_ cluster.Witness = (*Given)(nil)
)

// OpenGiven makes sure that every server of t accepts a connection, and opens the gates; see [cluster.Topology.Given].
// stranger is as in [Config]. Errors wrap [cluster.ErrEnvironment]; the result is to be closed then, too.
func OpenGiven(
	ctx context.Context, t cluster.Topology, stranger func(from, gate netip.AddrPort, to string),
) (*Given, error) {
	g := &Given{topology: t, fronts: fronts{stranger: stranger}}
	for i, addr := range t.Addrs {
		g.nodes = append(g.nodes, givenServer(fmt.Sprintf("n%d", i+1), addr))
	}
	for _, s := range g.nodes {
		if err := s.reach(ctx); err != nil {
			return g, fmt.Errorf("%w: %w", cluster.ErrEnvironment, err)
		}
	}
	return g, g.OpenGates()
}

// givenServer notes whether connections to it succeed.
func givenServer(name, addr string) *server {
	s := &server{name: name, addr: addr}
	s.dial = func(ctx context.Context) (gate.Conn, error) {
		conn, err := connect(ctx, addr, nil)
		if ctx.Err() == nil {
			s.refuses.Store(err != nil)
		}
		if err != nil {
			return nil, fmt.Errorf("connecting to %s: %w", addr, err)
		}
		return conn, nil
	}
	return s
}

// reach opens a connection and closes it.
func (s *server) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Topology has the addresses of the servers.
func (g *Given) Topology() cluster.Topology { return g.topology }

// Endpoints is how client i reaches the servers through the gates, also under the addresses that they may announce.
func (g *Given) Endpoints(i int) topology.Endpoints {
	e := topology.Endpoints{Kind: g.topology.Kind, Source: process.ClientAddr(i).String()}
	for _, s := range g.nodes {
		if e.Gates == nil {
			e.Gates = map[string]string{}
		}
		e.Addrs, e.Gates[s.addr] = append(e.Addrs, s.gate.Addr()), s.gate.Addr()
	}
	return e
}

// Sample is whether a server has accepted the last connection; keys are not read.
func (g *Given) Sample(_ context.Context, node string, _ []string) history.Sample {
	sample := history.Sample{Node: node}
	if s, err := g.node(node); err == nil {
		sample.Up = !s.refuses.Load()
	}
	if len(g.nodes) == 1 {
		sample.Role = "master"
	}
	return sample
}

// Close ends every connection of the run.
func (g *Given) Close(context.Context) error { return g.closeGates() }
