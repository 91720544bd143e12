package lock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/inflight"
	"github.com/lockchaos/lockchaos/lock/internal/random"
	"github.com/lockchaos/lockchaos/lock/internal/tasks"
	"github.com/lockchaos/lockchaos/lock/internal/wait"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Client makes locks on one Redis, or on a majority of several. Keep one for the lifetime of the program: all of its
// locks share its watchdog and its subscription. Several goroutines may use it. The caller closes it.
type Client struct {
	o             Options
	bg            *tasks.Group
	random        *random.Source
	store         store // of plain mutexes
	masters       []*single
	node          *node        // the one master; nil: there are several
	addrs         string       // of its servers
	queues        *wait.Queues // nil: waiters poll
	dog           *watchdog
	oldTombstones oldTombstones
	quorum        *quorum // of several masters; nil: there is one
	single        bool
	uuid          string        // of its owners in Redisson's layout
	unreachable   atomic.Int64  // when it was last reported, in ns since 1970; 0: never
	plain         *settings     // of locks that were made without options
	grace         time.Duration // see undoGrace
	maxHeartbeat  time.Duration // see maxHeartbeat

	// Stores of other kinds of locks. They need one master.
	fair                *fairStore
	readers, writers    *rwStore
	semaphores, permits *permitStore
	fairPermits         *permitStore
}

// store is where locks of one kind are kept. All errors are *requestError.
type store interface {
	// acquire asks for c once. On several masters it cleans up after itself, and c cannot be granted later.
	acquire(ctx context.Context, c claim) (grant, error)
	// release releases c, whether it was granted or not, and keeps it from being granted later. It may be sent again.
	// left is how many holds the owner has left, or codeNotHeld or codeNotOwner.
	release(ctx context.Context, c claim) (left int, err error)
	// renew extends claims of this kind, all of them to their own lease.
	renew(ctx context.Context, claims []claim) []renewal
	// kind is its name in events and errors.
	kind() string
}

// grant is the reply to a claim.
type grant struct {
	ok    bool
	plain *words // ok, by SET
	granted
	why      error         // not ok
	ttl      time.Duration // not ok: after that it may be granted; negative: no such time is known
	fewerFit bool          // not ok, but fewer permits could be granted
}

// New makes a client for one master: a *redis.Client, alone or as made by redis.NewFailoverClient for Sentinel, or a
// *redis.ClusterClient. The client does not close rdb. rdb's own MaxRetries does not apply: requests are retried
// here, under the same id. Concurrent requests are sent as one pipeline, so a few connections are enough. Set the
// option ContextTimeoutEnabled of rdb: without it, each request that may be canceled needs a separate goroutine,
// which costs more time than a nearby server. Add hooks to rdb before calling New: requests may miss later ones.
func New(rdb redis.UniversalClient, o Options) (*Client, error) {
	c, err := newClient(o)
	if err == nil {
		err = checkClients(rdb)
	}
	if err != nil {
		return nil, fmt.Errorf("make lock client: %w", err)
	}
	n := newNode(rdb, c.bg, c.o)
	ttl := c.o.tombstoneTTL()
	plain := &single{node: n, scripts: newMutexScripts(c.o), tombstoneTTL: ttl}
	c.single, c.node, c.addrs = true, n, wire.Addresses(rdb)
	c.store, c.masters = plain, []*single{plain}
	c.fair = &fairStore{plain}
	c.readers, c.writers = &rwStore{n, ttl, "r"}, &rwStore{n, ttl, "w"}
	c.semaphores.node, c.permits.node, c.fairPermits.node = n, n, n
	c.queues = wait.NewQueues(rdb, c.bg, c.random, c.o.Timeout, c.o.Order)
	c.queues.Report = c.reportPolling
	if c.o.Layout == Redisson {
		c.store = &redissonStore{plain, c.queues}
	}
	return c, nil
}

// NewQuorum makes a client whose locks are held by a majority of rdbs, which must be independent masters, an odd number
// of at least three (RedLock). Its locks have no fencing token, because counters on several masters drift apart
// (Kleppmann 2016), and its waiters poll with random delays. The client does not close rdbs.
func NewQuorum(o Options, rdbs ...redis.UniversalClient) (*Client, error) {
	if len(rdbs) < 3 || len(rdbs)%2 == 0 {
		return nil, fmt.Errorf("make lock client: got %d masters; an odd number of at least three is needed", len(rdbs))
	}
	c, err := newClient(o)
	if err == nil {
		err = checkClients(rdbs...)
	}
	if err == nil && o.Replicas != 0 {
		err = errors.New("masters of a quorum need no replicas: leave the option Replicas out")
	}
	if err == nil && o.Layout != OwnLayout {
		err = ErrLayout
	}
	if err != nil {
		return nil, fmt.Errorf("make lock client: %w", err)
	}
	q := &quorum{bg: c.bg, random: c.random, o: c.o, releases: tasks.New(ErrClosed)}
	q.inFlight, q.late = inflight.New(len(rdbs)), make([]lateReleases, len(rdbs))
	scripts := newMutexScripts(c.o)
	for _, rdb := range rdbs {
		q.nodes = append(q.nodes, &single{
			node: newNode(rdb, c.bg, c.o), scripts: scripts, tombstoneTTL: c.o.tombstoneTTL(),
		})
	}
	c.store, c.quorum, c.masters = q, q, q.nodes
	c.addrs = wire.Addresses(rdbs...)
	return c, nil
}

// checkClients refuses anything but clients of one master or a cluster (a Ring loses the locks of a shard that fails,
// and pipelines of it panic), and a server that would have two votes.
func checkClients(rdbs ...redis.UniversalClient) error {
	seen := make(map[string]bool)
	for i, rdb := range rdbs {
		if v := reflect.ValueOf(rdb); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return fmt.Errorf("redis client %d is nil: give one", i+1)
		}
		switch rdb.(type) {
		case *redis.Client, *redis.ClusterClient:
		default:
			return fmt.Errorf("redis client %d is a %T: give a *redis.Client or a *redis.ClusterClient", i+1, rdb)
		}
		address := wire.Addresses(rdb)
		if address == "" || strings.HasPrefix(address, "FailoverClient") {
			address = fmt.Sprintf("%p", rdb) // its server is not known
		}
		if seen[address] {
			return fmt.Errorf("redis client %d is of the same server as another, %s: give independent masters",
				i+1, wire.Addresses(rdb))
		}
		seen[address] = true
	}
	return nil
}

func newClient(o Options) (*Client, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	c := &Client{
		o: o, plain: &settings{}, bg: tasks.New(ErrClosed), random: random.New(o.Rand),
		grace: undoGrace, maxHeartbeat: maxHeartbeat,
	}
	if o.Layout == Redisson {
		c.uuid = c.random.UUID()
	}
	c.dog = newWatchdog(c)
	c.semaphores = &permitStore{tombstoneTTL: o.tombstoneTTL()}
	c.permits = &permitStore{tombstoneTTL: o.tombstoneTTL(), leased: true}
	c.fairPermits = &permitStore{tombstoneTTL: o.tombstoneTTL(), leased: true, fair: true}
	return c, nil
}

// Mutex is the lock of that name. It sends no request and needs no closing.
func (c *Client) Mutex(name string, opts ...Option) *Mutex {
	return &Mutex{named: c.named(name, opts)} // inlined, it is not on the heap
}

// Close ends every hold (cause [ErrClosed]), the watchdog and the subscription, and returns when no goroutine of the
// client is left, or with an error if ctx ended before. With several masters, releases that some of them have not
// confirmed are sent once more, which takes up to Options.Timeout if one does not reply. The keys of holds that were
// not released stay until their lease expires, because their holders may still be working. So do partial grants of an
// acquire that Close ends: by some masters, or of some locks of a multi-lock. It may be called twice.
func (c *Client) Close(ctx context.Context) error {
	c.dog.close()
	if c.quorum != nil { // a master that does not confirm a release is sent it once more
		_ = c.quorum.releases.Close(ctx) // if ctx ends, c.bg reports it too
	}
	return c.bg.Close(ctx)
}
