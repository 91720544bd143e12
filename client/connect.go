package client

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Limits of a native client's connections: short enough that a dead node is
// noticed within a run, long enough that a slow one is not called dead.
const (
	dialTimeout = 500 * time.Millisecond
	readTimeout = 2 * time.Second
)

// poolSize is larger than one client needs: after as many failed dials as that, go-redis
// dials only once a second (internal/pool, tryDial), which would hide for up to a second
// that a replica has been promoted.
const poolSize = 64

// slotsEvery is how often a cluster is asked who has which slots. go-redis asks
// once a minute unless a node redirects it, and a master that is dead redirects
// nobody: for so long nobody would find the replica that has taken over.
const slotsEvery = time.Second

// maxRedirects is how often a request to a cluster may be sent on to another
// node: a redirection is an answer, and says that nothing was done.
const maxRedirects = 3

// connect opens one client for each server that e names: one for a single
// master, Sentinel or a cluster, N for a quorum. None of them sends a request again.
func connect(s Setup) ([]redis.UniversalClient, error) { return connectRetrying(s, -1) }

// connectRetrying is connect with clients that send a request up to retries times again.
func connectRetrying(s Setup, retries int) ([]redis.UniversalClient, error) {
	redis.SetLogger(discardLogger{})
	e := s.Endpoints
	dial, err := dialer(s)
	if err != nil {
		return nil, err
	}
	if e.Kind == Sentinel && s.Dial == nil {
		return []redis.UniversalClient{redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: e.MasterName, SentinelAddrs: e.Sentinels, Dialer: dial,
			MaxRetries: retries, DialerRetries: 1, PoolSize: poolSize,
			DialTimeout: dialTimeout, ReadTimeout: readTimeout, WriteTimeout: readTimeout, ContextTimeoutEnabled: true,
		})}, nil
	}
	if e.Kind == Sharded {
		return []redis.UniversalClient{redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: e.Addrs, Dialer: dial, MaxRetries: retries, MaxRedirects: maxRedirects,
			DialerRetries: 1, PoolSize: poolSize,
			ClusterStateReloadInterval: slotsEvery, ContextTimeoutEnabled: true,
			DialTimeout: dialTimeout, ReadTimeout: readTimeout, WriteTimeout: readTimeout,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})}, nil
	}
	var all []redis.UniversalClient
	for _, addr := range e.Addrs {
		all = append(all, redis.NewClient(&redis.Options{
			Addr: addr, Dialer: dial, MaxRetries: retries, DialerRetries: 1, PoolSize: poolSize,
			DialTimeout: dialTimeout, ReadTimeout: readTimeout, WriteTimeout: readTimeout, ContextTimeoutEnabled: true,
			// Its host name look-up would be real I/O in a simulation.
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("topology %q names no server", e.Kind)
	}
	return all, nil
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer connects from the source that the client was told, so that the gates
// know whose connection it is.
func dialer(s Setup) (dialFunc, error) {
	if s.Dial != nil {
		return s.Dial, nil
	}
	source := s.Endpoints.Source
	d := &net.Dialer{Timeout: dialTimeout}
	if source != "" {
		ip := net.ParseIP(source)
		if ip == nil {
			return nil, fmt.Errorf("source %q is not an IP address", source)
		}
		d.LocalAddr = &net.TCPAddr{IP: ip}
	}
	return d.DialContext, nil
}

// quiet keeps go-redis from writing to standard error about every lost
// connection: that is what runs are made of.
type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}

// closeAll closes clients and keeps the first error.
func closeAll(clients []redis.UniversalClient) error {
	var first error
	for _, c := range clients {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
