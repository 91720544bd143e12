package lock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client makes locks on one Redis, or on a majority of several. Keep one for as
// long as the program runs: its watchdog and its one subscription serve all of
// its locks. Several goroutines may use it. The caller closes it.
type Client struct {
	o             Options
	bg            *background
	random        *random
	store         store
	masters       []*single
	node          *node       // the one master; nil: there are several
	where         string      // addresses of its servers
	queues        *waitQueues // nil: waiters are not told, they ask again
	dog           *watchdog
	oldTombstones oldTombstones
	quorum        *quorum // of several masters; nil: there is one
	single        bool
	grace         time.Duration // see undoGrace
	maxHeartbeat  time.Duration // see beat

	// Other kinds of locks; nil: there are several masters.
	fair             *fairStore
	readers, writers *rwStore
}

// store is where locks are kept. All errors are *requestError.
type store interface {
	// acquire asks for c once. On several masters it cleans up after itself,
	// and the id of c is spent if it was not granted.
	acquire(ctx context.Context, c claim) (grant, error)
	// release gives c back, whether it was granted or not, and keeps it from
	// being granted later. It may be asked again. See release.lua for the answer.
	release(ctx context.Context, c claim) (left int, err error)
	// renew prolongs claims, all of them to their own lease.
	renew(ctx context.Context, claims []claim) []renewal
}

// grant is the answer to a claim.
type grant struct {
	ok    bool
	count int
	token uint64
	ttl   time.Duration // not ok: what the other owner has left; negative: no end
	sent  time.Time     // when the question was sent: the lease counts from here
}

// renewal is the answer for one claim that was to be prolonged.
type renewal struct {
	kept bool
	sent time.Time
	err  error // not nil: unanswered, and kept means nothing
}

// New makes a client for one master: a *redis.Client, alone or as made by
// redis.NewFailoverClient for Sentinel, or a *redis.ClusterClient. The client does
// not close rdb. rdb's own MaxRetries does not apply: requests are sent again here,
// under the same id. What is asked for at once goes out as one pipeline, so a
// few connections are enough. Give rdb the option ContextTimeoutEnabled: without
// it, each request that may be cancelled needs a goroutine of its own, which takes
// longer than a server nearby.
func New(rdb redis.UniversalClient, o Options) (*Client, error) {
	c, err := newClient(o)
	if err == nil {
		err = checkClients(rdb)
	}
	if err != nil {
		return nil, fmt.Errorf("make lock client: %w", err)
	}
	n := newNode(rdb, c.bg)
	if c.o.Replicas != 0 {
		r := &replicas{rdb: rdb, need: c.o.Replicas, timeout: c.o.ReplicaTimeout}
		n.safe = &pipe{bg: c.bg, send: r.send}
	}
	c.node = n
	c.where = where(rdb)
	plain := &single{node: n, scripts: newScripts(c.o), tombstoneTTL: c.o.tombstoneTTL(), tokens: c.o.Tokens}
	c.store, c.fair = kinds{plain}, newFairStore(plain)
	c.readers, c.writers = newRWStores(plain)
	c.masters = []*single{plain}
	c.queues = newWaitQueues(rdb, c.bg, c.random, c.o.Timeout)
	c.single = true
	return c, nil
}

// NewQuorum makes a client whose locks are held by a majority of rdbs, which
// must be independent masters, an odd number of at least three (RedLock). Its
// locks have no fencing token, for counters on several masters drift apart
// (Kleppmann 2016), and its waiters ask again after a delay drawn by chance.
// The client does not close rdbs.
func NewQuorum(rdbs []redis.UniversalClient, o Options) (*Client, error) {
	if len(rdbs) < 3 || len(rdbs)%2 == 0 {
		return nil, fmt.Errorf("make lock client: %d masters: give an odd number, three or more", len(rdbs))
	}
	c, err := newClient(o)
	if err == nil {
		err = checkClients(rdbs...)
	}
	if err == nil && o.Replicas != 0 {
		err = errors.New("masters of a quorum need no replicas: leave the option Replicas out")
	}
	if err != nil {
		return nil, fmt.Errorf("make lock client: %w", err)
	}
	q := &quorum{bg: c.bg, o: c.o, giving: newBackground()}
	for _, rdb := range rdbs {
		n := newNode(rdb, c.bg)
		q.random = append(q.random, c.random.branch())
		q.nodes = append(q.nodes, &single{node: n, scripts: newScripts(c.o), tombstoneTTL: c.o.tombstoneTTL()})
	}
	c.masters = q.nodes
	c.where = where(rdbs...)
	c.store = kinds{q}
	c.quorum = q
	return c, nil
}

// checkClients refuses what is no client, and a server that would have two voices.
func checkClients(rdbs ...redis.UniversalClient) error {
	seen := make(map[string]bool)
	for i, rdb := range rdbs {
		if v := reflect.ValueOf(rdb); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return fmt.Errorf("redis client %d is nil: give one", i+1)
		}
		address := where(rdb)
		if address == "" || strings.HasPrefix(address, "FailoverClient") {
			address = fmt.Sprintf("%p", rdb) // says nothing of itself
		}
		if seen[address] {
			return fmt.Errorf("redis client %d is of the same server as another, %s: give independent masters", i+1, where(rdb))
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
	c := &Client{o: o, bg: newBackground(), random: newRandom(o.Rand), grace: undoGrace, maxHeartbeat: maxHeartbeat}
	c.dog = newWatchdog(c)
	return c, nil
}

// Mutex is the lock of that name. It costs nothing and needs no closing.
func (c *Client) Mutex(name string) *Mutex { return &Mutex{client: c, name: name} }

// FencedMutex is the same lock, and each of its grants has a fencing token, also
// where [Options].Tokens asks for none. All who use a lock of that name should
// take it so: a grant to a plain mutex has no token, nor have its inner holds. On
// a client of several masters there is none either.
func (c *Client) FencedMutex(name string) *Mutex {
	return &Mutex{client: c, name: name, fenced: c.single}
}

// SpinMutex is the same lock, but who waits for it asks again and again, after
// delays drawn by chance that grow up to 128 ms: no subscription is made. It
// suits very many locks that are seldom contended.
func (c *Client) SpinMutex(name string) *Mutex { return &Mutex{client: c, name: name, spin: true} }

// Close ends every hold (cause [ErrClosed]), the watchdog and the subscription,
// and returns when nothing of the client runs any more; its error says that ctx
// ended before. The keys of holds that were not released stay until their lease
// runs out, since their holders may still be at work. It may be called twice.
func (c *Client) Close(ctx context.Context) error {
	c.dog.close()
	if c.quorum != nil { // a master that heard of no release would keep the hold until its lease is over
		_ = c.quorum.giving.close(ctx) // if ctx ends, c.bg says so too
	}
	return c.bg.close(ctx)
}

// giveBack releases cl, asking again until there is an answer or the client's
// timeout is over, even if ctx has ended.
func (c *Client) giveBack(ctx context.Context, cl claim) (left int, err error) {
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	end := time.Now().Add(c.o.Timeout)
	if c.single { // most often there is an answer at once, and nobody has to be told of the end
		ctx = &until{ctx, end}
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	maybe := false
	for {
		left, err = c.store.release(ctx, cl)
		if err == nil || outcomeOf(err) == rejected && !maybe {
			return left, err
		}
		if u, is := ctx.(*until); is {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(u.Context, end)
			defer cancel()
		}
		maybe = maybe || outcomeOf(err) == unknown
		if outcomeOf(err) == rejected || !c.pause(ctx, c.backoff()) {
			break
		}
	}
	if maybe {
		err = &requestError{unknown, err}
	}
	return left, err
}

// backoff is the delay before a request is sent again whose server did not
// answer: short, for a failover takes as long as it takes.
func (c *Client) backoff() time.Duration {
	return c.random.between(20*time.Millisecond, 100*time.Millisecond)
}

// pause waits for d and reports whether ctx and the client still live.
func (c *Client) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-c.bg.ctx.Done():
	}
	return false
}
