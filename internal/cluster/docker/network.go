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

// disconnect disconnects a server's container from the network. Linux keeps its TCP
// connections: packets are lost and retransmitted.
func (l *launcher) disconnect(ctx context.Context, node string) error {
	return l.withNetwork(ctx, "disconnecting", node, func(ctx context.Context, s *containerServer) error {
		_, err := l.engine.NetworkDisconnect(ctx, l.network.ID(), client.NetworkDisconnectOptions{Container: s.id})
		if err != nil {
			return err
		}
		return l.unreachable(ctx, s)
	})
}

// serverPort is where servers listen in their containers, see process.InSubnet.
const serverPort = "6379"

// probeWait is after how long a connection attempt to a disconnected server counts as failed.
const probeWait = 100 * time.Millisecond

// unreachable checks that the server cannot be reached.
func (l *launcher) unreachable(ctx context.Context, s *containerServer) error {
	at := net.JoinHostPort(l.addressOf(s).String(), serverPort)
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil
	}
	_ = conn.Close()
	return fmt.Errorf("it still accepts connections at %s", at)
}

func (l *launcher) addressOf(s *containerServer) netip.Addr {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	return l.engine.addresses[s.name]
}

// reconnect connects it again under the same address, so that connections continue.
func (l *launcher) reconnect(ctx context.Context, node string) error {
	return l.withNetwork(ctx, "reconnecting", node, func(ctx context.Context, s *containerServer) error {
		_, err := l.engine.NetworkConnect(ctx, l.network.ID(), client.NetworkConnectOptions{
			Container: s.id, EndpointConfig: fixed(l.addressOf(s)),
		})
		return err
	})
}

func (l *launcher) withNetwork(
	ctx context.Context, what, node string, do func(context.Context, *containerServer) error,
) error {
	s := l.server(node)
	if s == nil {
		return fmt.Errorf("%s %s: %w", what, node, cluster.ErrNoNode)
	}
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	err := l.err()
	if err == nil {
		err = do(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, node, err)
	}
	return nil
}

func (l *launcher) server(node string) *containerServer {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h, s := range l.servers { // order does not matter: names differ
		if h.String() == node {
			return s
		}
	}
	return nil
}
