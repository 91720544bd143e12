package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// Options configure a [Client]. The zero value has the defaults.
type Options struct {
	// Lease is the time to live of the lease: how long a lock stays held after its holder died. It is rounded up to whole
	// seconds, and servers make one longer that is shorter than 1.5 of their election timeouts. 0: 10 s.
	Lease time.Duration
	// Margin is by how much a hold ends here before its lease can end at the servers, for clocks of different speeds. 0: a
	// tenth of the lease.
	Margin time.Duration
	// Timeout bounds a release, and the removal of a key whose acquire has failed. Both continue in the background until
	// they are certain or the lease ends. 0: 5 s.
	Timeout time.Duration
	// LeaderFirst sends the first attempt of each transaction to the leader, on a separate connection with the
	// settings of the etcd client. A follower would forward it to the leader, and reply only after it has applied the
	// entry itself. If the leader does not answer, the next attempt is made on the connection of the etcd client.
	// There is one connection to each endpoint that the etcd client has at Open. The client's KV must never be
	// replaced or wrapped, for example by package namespace: first attempts would bypass the wrapper.
	LeaderFirst bool
	// Root begins the names of all keys, followed by a slash: for the root /locks, a user of etcd needs a role that may
	// read and write the prefix /locks/. Empty: /locks. Locks of different roots are different, even if one root begins
	// with the other. Root must not have two slashes in a row.
	Root string
	// OnLost is called when a hold is lost, OnRenewed when its Deadline is later. They must not block. OnLost may be
	// called for several holds at once, OnRenewed is called from one goroutine at a time. nil: nothing is called.
	OnLost, OnRenewed func(*Hold)
	// Observe is called with every event of locks and permits, from several goroutines, and with [lock.Unreachable] when
	// a call has waited two seconds for a session, then every ten. A hold that is lost at once may be reported as lost
	// before it is reported as acquired. It must return at once. Nil: it is not called.
	Observe func(lock.Event)
	// Logger gets the same events as debug messages, and problems as warnings. Nil: nothing is logged.
	Logger *slog.Logger
}

const (
	defaultLease   = 10 * time.Second
	defaultTimeout = 5 * time.Second
	defaultRoot    = "/locks"
	marginPart     = 10 // the default margin is this part of the lease
)

// Client makes locks on one cluster. Its holds share a lease. It may be used by several goroutines.
type Client struct {
	etcd     *clientv3.Client
	members  []*member // for requests to the leader; none without Options.LeaderFirst
	o        Options
	sessions sessions.Client[*session]
}

// Open makes a client of the cluster that c is connected to. The caller closes both, c last. A member that hangs is
// detected by c's DialKeepAliveTime; until then a request without a reply is resent, perhaps to another member, after
// a fraction of the lease that grows from 1/32 to a quarter.
func Open(c *clientv3.Client, o Options) (*Client, error) {
	o.Lease, o.Timeout = cmp.Or(o.Lease, defaultLease), cmp.Or(o.Timeout, defaultTimeout)
	o.Root = strings.TrimSuffix(cmp.Or(o.Root, defaultRoot), "/")
	if o.Lease > 0 {
		o.Lease = (o.Lease + time.Second - 1).Truncate(time.Second)
	}
	o.Margin = cmp.Or(o.Margin, o.Lease/marginPart)
	switch {
	case c == nil:
		return nil, errors.New("open an etcd lock client: no etcd client given")
	case strings.Contains(o.Root+"/", "//"):
		return nil, fmt.Errorf("open an etcd lock client: root %q has two slashes in a row", o.Root)
	case o.Lease < 0 || o.Timeout < 0 || o.Margin < 0 || o.Margin >= o.Lease:
		return nil, fmt.Errorf("open an etcd lock client: lease %v, margin %v, timeout %v: want positive times, and a "+
			"margin less than the lease", o.Lease, o.Margin, o.Timeout)
	}
	client := &Client{etcd: c, o: o}
	client.sessions.Settings = sessions.Settings{
		Observer: sessions.Observer{Observe: o.Observe, Logger: o.Logger},
		Service:  "etcd", Margin: o.Margin, Timeout: o.Timeout,
	}
	client.sessions.Open = client.openSession
	if o.LeaderFirst {
		if err := client.connect(); err != nil {
			return nil, err
		}
	}
	return client, nil
}

// Connect requests the lease, so that the first acquire need not wait for it. Its error is [lock.ErrClosed], or ctx's.
func (c *Client) Connect(ctx context.Context) error {
	_, err := c.sessions.Session(ctx)
	return err
}

// Close ends the lease, and with it every hold that was not released: their error is [lock.ErrClosed]. It waits until
// the servers know, at most until ctx ends or the lease has.
func (c *Client) Close(ctx context.Context) error {
	defer c.disconnect()
	return c.sessions.Close(ctx)
}

// Undone reports whether err says that an acquire failed but may have held the lock meanwhile: its key was removed
// before it returned. It implies [lock.Definite].
func Undone(err error) bool { return sessions.Undone(err) }
