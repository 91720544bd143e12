package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/topology"
)

// poolSize is more than a client uses. go-redis counts the failed dials of a pool, never forgets one, and from that
// many on fails commands without dialing, until a dial that it makes once a second succeeds (internal/pool, tryDial):
// that hid a server that was back for half a second, see docs/contributors/measurements.md.
const poolSize = 4096

// onePool makes pipelines use the main pool instead of one of ten connections.
const onePool = -1

// readBuffer is in bytes: replies to a lock are short, and a simulated run opens many connections for its seconds.
const readBuffer = 4 << 10

// defaultSlotReload is how often a cluster client reloads the slot map, unless option slot_reload says otherwise.
// go-redis reloads it once a minute unless a node redirects it, and a dead master redirects nothing: a promotion would
// stay unnoticed until then.
const defaultSlotReload = time.Second

// maxRedirects is how often a cluster may redirect one request. A redirection means that nothing was executed.
const maxRedirects = 3

// connect opens one client for each server that s names: one for a single master, Sentinel or a cluster, N for
// a quorum. None of them resends a command. Those of a cluster reload the slot map every slotReload, or every
// defaultSlotReload if it is 0.
func connect(s client.Setup, slotReload time.Duration) ([]redis.UniversalClient, error) {
	if slotReload > 0 && s.Endpoints.Kind != topology.Sharded {
		return nil, fmt.Errorf("option %s: topology %q has no slots", optionSlotReload, s.Endpoints.Kind)
	}
	return connectRetrying(s, -1, slotReload)
}

// connectRetrying is connect for clients that resend a command up to retries times.
func connectRetrying(s client.Setup, retries int, slotReload time.Duration) ([]redis.UniversalClient, error) {
	redis.SetLogger(discardLogger{})
	e := s.Endpoints
	dial, err := native.Dialer(s)
	if err != nil {
		return nil, err
	}
	o := redis.UniversalOptions{
		Addrs: e.Addrs, Password: e.Password, SentinelPassword: e.Password,
		Dialer: dial, MaxRetries: retries, MaxRedirects: maxRedirects, DialerRetries: 1,
		PoolSize: poolSize, PipelinePoolSize: onePool, ReadBufferSize: readBuffer,
		DialTimeout: native.DialTimeout, ReadTimeout: native.RequestTimeout, WriteTimeout: native.RequestTimeout,
		ContextTimeoutEnabled: true,
		// Its host name look-up would be real I/O in a simulation.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	sentinels := e.Kind == topology.Sentinel && s.Dial == nil
	if sentinels {
		o.Addrs, o.MasterName = e.Sentinels, e.MasterName
	}
	switch {
	case len(o.Addrs) == 0:
		return nil, fmt.Errorf("setup: endpoints of topology %q have no address", e.Kind)
	case sentinels:
		return []redis.UniversalClient{redis.NewFailoverClient(o.Failover())}, nil
	case e.Kind == topology.Sharded:
		cluster := o.Cluster()
		cluster.ClusterStateReloadInterval = cmp.Or(slotReload, defaultSlotReload)
		cluster.NewClient = func(o *redis.Options) *redis.Client { return connectServer(s, o) }
		// Its table of commands is read from one server under a mutex, for which every other command waits.
		cluster.DisableRoutingPolicies = true
		return []redis.UniversalClient{redis.NewClusterClient(cluster)}, nil
	}
	var conns []redis.UniversalClient
	for _, addr := range e.Addrs {
		o.Addrs = []string{addr}
		conns = append(conns, connectServer(s, o.Simple()))
	}
	return conns, nil
}

// discardLogger keeps go-redis from logging every lost connection: runs are full of them.
type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}

func closeAll(conns []redis.UniversalClient) error {
	var errs []error
	for _, c := range conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
