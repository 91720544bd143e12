package docker

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/moby/moby/client"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// disconnect takes a server's container off the network. Linux keeps its connections:
// what they send is lost and sent again, and what was on its way never arrives.
func (g *launcher) disconnect(ctx context.Context, node string) error {
	return g.withNetwork(ctx, "unplugging", node, func(ctx context.Context, b *containerServer) error {
		_, err := g.engine.NetworkDisconnect(ctx, g.network.ID(), client.NetworkDisconnectOptions{Container: b.id})
		if err != nil {
			return err
		}
		return g.unreachable(ctx, b)
	})
}

// serverPort is where servers listen in their containers, see process.InSubnet.
const serverPort = "6379"

// probeWait is how long a call to a server without a cable is given to fail to fail.
const probeWait = 100 * time.Millisecond

// unreachable makes sure that nothing reaches the server any more.
func (g *launcher) unreachable(ctx context.Context, b *containerServer) error {
	at := net.JoinHostPort(g.addressOf(b).String(), serverPort)
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil
	}
	_ = conn.Close()
	return fmt.Errorf("it still answers at %s", at)
}

func (g *launcher) addressOf(b *containerServer) netip.Addr {
	g.engine.mu.Lock()
	defer g.engine.mu.Unlock()
	return g.engine.addresses[b.name]
}

// reconnect puts it back. The address is the one that it had, so that connections go on.
func (g *launcher) reconnect(ctx context.Context, node string) error {
	return g.withNetwork(ctx, "plugging in", node, func(ctx context.Context, b *containerServer) error {
		_, err := g.engine.NetworkConnect(ctx, g.network.ID(), client.NetworkConnectOptions{
			Container: b.id, EndpointConfig: fixed(g.addressOf(b)),
		})
		return err
	})
}

func (g *launcher) withNetwork(
	ctx context.Context, what, node string, do func(context.Context, *containerServer) error,
) error {
	b := g.server(node)
	if b == nil {
		return fmt.Errorf("%s %s: %w", what, node, cluster.ErrNoNode)
	}
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	err := g.err()
	if err == nil {
		err = do(ctx, b)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, node, err)
	}
	return nil
}

func (g *launcher) server(node string) *containerServer {
	g.mu.Lock()
	defer g.mu.Unlock()
	for h, b := range g.servers { // order does not matter: names differ
		if h.String() == node {
			return b
		}
	}
	return nil
}
