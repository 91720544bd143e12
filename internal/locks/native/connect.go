package native

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/lockchaos/lockchaos/client"
)

// Timeouts of a native client: short enough that a dead node is noticed within a run,
// long enough that a slow one is not taken for dead.
const (
	DialTimeout    = 500 * time.Millisecond
	RequestTimeout = 2 * time.Second
)

type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Dialer connects from Endpoints.Source: the gates identify clients by it.
func Dialer(s client.Setup) (DialFunc, error) {
	if s.Dial != nil {
		return s.Dial, nil
	}
	source := s.Endpoints.Source
	d := &net.Dialer{Timeout: DialTimeout}
	if source != "" {
		ip := net.ParseIP(source)
		if ip == nil {
			return nil, fmt.Errorf("setup: endpoints.source: %q is not an IP address", source)
		}
		d.LocalAddr = &net.TCPAddr{IP: ip}
	}
	if s.Endpoints.Gates == nil {
		return d.DialContext, nil
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		through, err := s.Endpoints.Gate(addr)
		if err != nil {
			return nil, err
		}
		return d.DialContext(ctx, network, through)
	}, nil
}
