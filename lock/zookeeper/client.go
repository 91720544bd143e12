package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// Options configure a [Client]. The zero value has the defaults.
type Options struct {
	// Session is the session timeout: how long a lock stays held after its holder died. The servers may bound it; by
	// default they allow 2 to 20 of their ticks. 0: 10 s.
	Session time.Duration
	// Margin is how long before the earliest possible end of its session on the servers a hold ends here. When a
	// follower dies, the leader may lack the heartbeats that its clients sent in the last half tick, so Margin should
	// be at least half a tick. A follower whose messages do not reach the leader still answers heartbeats, for up to
	// syncLimit ticks: for about two thirds of the session timeout no hold is affected, but after that the leader may
	// grant the lock to others before the Deadline of the holds here, unless Margin covers that time. Tokens are safe in
	// any case. 0: a tenth of the session timeout.
	Margin time.Duration
	// Timeout bounds a release, and the removal of a node whose acquire has failed. Both continue in the background
	// until they are certain or the session ends. 0: 5 s.
	Timeout time.Duration
	Root    string // parent of the locks, such as /locks/billing; empty: /locks
	// Auth is the identity of each session. It is sent in clear text, unless Dial uses TLS. Nil: none.
	Auth *Auth
	// ACL is the access list of the node of each lock and of the nodes below it. Every client of a lock needs all rights
	// for them. Root and its parents, and the node .released below it, are created for all users: create Root before, if
	// others must not use it. Nil: all rights, for the identity of Auth, and without one for all users.
	ACL []zk.ACL
	// Dial replaces net.Dialer. nil: use the network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Order, in a simulation, lets goroutines that can run at one instant of virtual time through one by one, as that of
	// [lock.Options] does. It is called before each request, and before a request is numbered. Nil outside of simulations.
	Order func(server string, command func() string)
	// OnLost is called when a hold is lost, OnRenewed when a server has answered a heartbeat, so that the hold's
	// Deadline is later. They must not block. OnLost may be called for several holds at once, OnRenewed is called from
	// one goroutine at a time. nil: nothing is called.
	OnLost, OnRenewed func(*Hold)
	// Observe is called with every event of locks and permits, from several goroutines, and with [lock.Unreachable] when
	// a call has waited two seconds for a session, then every ten. A hold that is lost at once may be reported as lost
	// before it is reported as acquired. It must return at once. Nil: it is not called.
	Observe func(lock.Event)
	// Logger gets the same events as debug messages, and problems as warnings. Nil: nothing is logged.
	Logger *slog.Logger
}

// Auth is an identity at the servers.
type Auth struct {
	Scheme      string // of an authentication provider of the servers, such as digest
	Credentials []byte // for digest: user:password
}

const (
	defaultSession = 10 * time.Second
	defaultTimeout = 5 * time.Second
	defaultRoot    = "/locks"
	marginPart     = 10 // the default margin is this part of the session timeout
)

// Client makes locks on one ensemble. Its holds share a session. It may be used by several goroutines.
type Client struct {
	servers  []string
	o        Options
	sessions sessions.Client[*session]
}

// Open makes a client of the ensemble with these servers, as host:port. It connects when the first lock is acquired, to
// the first of them that answers: programs that give them in different orders spread their load.
func Open(servers []string, o Options) (*Client, error) {
	o.Session, o.Timeout = cmp.Or(o.Session, defaultSession), cmp.Or(o.Timeout, defaultTimeout)
	o.Root = strings.TrimSuffix(cmp.Or(o.Root, defaultRoot), "/")
	o.Margin = cmp.Or(o.Margin, o.Session/marginPart)
	switch {
	case len(servers) == 0:
		return nil, errors.New("open a ZooKeeper client: no server given")
	case o.Session < time.Millisecond || o.Timeout < 0 || o.Margin < 0 || o.Margin >= o.Session:
		return nil, fmt.Errorf("open a ZooKeeper client: session %v, margin %v, timeout %v: want positive times, and a "+
			"margin less than the session", o.Session, o.Margin, o.Timeout)
	case o.Auth != nil && o.Auth.Scheme == "":
		return nil, errors.New("open a ZooKeeper client: the identity has no scheme")
	case !strings.HasPrefix(o.Root, "/"):
		return nil, fmt.Errorf("open a ZooKeeper client: root %q does not begin with a slash", o.Root)
	}
	if o.ACL == nil {
		o.ACL = zk.WorldACL(zk.PermAll)
		if o.Auth != nil {
			o.ACL = zk.AuthACL(zk.PermAll)
		}
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	c := &Client{servers: slices.Clone(servers), o: o}
	c.sessions.Settings = sessions.Settings{
		Observer: sessions.Observer{Observe: o.Observe, Logger: o.Logger},
		Service:  "ZooKeeper", Margin: o.Margin, Timeout: o.Timeout,
	}
	c.sessions.Open = c.openSession
	return c, nil
}

// Connect begins the session, so that the first acquire need not wait for it. Its error is [lock.ErrClosed], ctx's, or
// [zk.ErrAuthFailed].
func (c *Client) Connect(ctx context.Context) error {
	_, err := c.sessions.Session(ctx)
	return err
}

// Close ends the session, and with it every hold that was not released: their error is [lock.ErrClosed]. It waits until
// the servers know, or for a second; ctx may shorten that.
func (c *Client) Close(ctx context.Context) error { return c.sessions.Close(ctx) }

// Undone reports whether err says that an acquire failed but may have held the lock meanwhile: its node was removed
// before it returned. It implies [lock.Definite].
func Undone(err error) bool { return sessions.Undone(err) }
