package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockchaos/lockchaos/lock/internal/queues"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// queue is how requests of one kind are served: each has a key in the queue of every lock that it is for.
type queue struct {
	client  *Client
	names   []string // of the locks
	kind    queues.Kind
	permits int // 0: the whole lock
}

func (q *queue) acquire(ctx context.Context, owner string, wait bool) (*Hold, error) {
	events := &q.client.sessions
	began, about := time.Now(), queues.Event(q.names[0], owner, q.permits)
	h, err := q.attempt(ctx, owner, wait)
	if err != nil {
		err = fmt.Errorf("acquire lock %q: %w", q.names[0], err)
		events.Acquired(ctx, about, 0, err, began)
		return nil, err
	}
	events.Acquired(ctx, about, h.Token(), nil, began)
	return h, nil
}

func (q *queue) attempt(ctx context.Context, owner string, wait bool) (*Hold, error) {
	for _, name := range q.names {
		if name == "" || strings.ContainsAny(name, "/\x00") {
			return nil, errors.New("the name must not be empty or contain a slash")
		}
	}
	s, err := q.client.sessions.Session(ctx)
	if err != nil {
		return nil, err
	}
	c := newClaim(s, q, owner)
	h, err := q.obtain(ctx, c, wait)
	if err != nil && c.asked {
		err = s.Undo(err, func() error { return c.remove(context.Background()) })
	}
	return h, err
}

// obtain creates the keys and waits until it is the turn of each. The keys of one request have one revision, so
// requests for several locks cannot deadlock.
func (q *queue) obtain(ctx context.Context, c *claim, wait bool) (*Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	first, err := c.create(ctx)
	if err != nil {
		return nil, err
	}
	if !first {
		for _, e := range c.entries {
			if err := queues.Await(ctx, &place{claim: c, entry: e, kind: q.kind}, wait); err != nil {
				return nil, err
			}
		}
	}
	return q.grant(ctx, c)
}

// place is one key of a claim in the queue of its lock.
type place struct {
	*claim
	entry entry
	kind  queues.Kind
	since int64 // the revision at which Turn has read the queue
}

// Turn reads the keys of the lock, of a kind with Last only the one before this.
func (p *place) Turn(ctx context.Context) (queues.Turn, error) {
	e := p.entry
	options := []clientv3.OpOption{
		clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend), clientv3.WithKeysOnly(),
	}
	if p.kind.Last {
		options = append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(p.revision-1), clientv3.WithKeysOnly())
	}
	reply, err := repeat(ctx, p.session, func(ctx context.Context, kv clientv3.KV) (*clientv3.TxnResponse, error) {
		return kv.Txn(ctx).If(p.there(e)).Then(clientv3.OpGet(e.prefix, options...)).Commit()
	})
	if err != nil || !reply.Succeeded {
		return queues.Turn{}, err
	}
	p.since = reply.Header.Revision
	var names []string
	for _, kv := range reply.Responses[0].GetResponseRange().Kvs {
		names = append(names, strings.TrimPrefix(string(kv.Key), e.prefix))
	}
	if p.kind.Last {
		names = append(names, e.name)
	}
	return p.kind.Turn(e.name, names), nil
}

func (p *place) Changed(ctx context.Context, t queues.Turn) error {
	if t.Any {
		return p.awaitEvent(ctx, p.entry.prefix, p.since+1, clientv3.WithPrefix(), clientv3.WithFilterPut())
	}
	// A put is the announcement that the entry before has the lock, too.
	return p.awaitEvent(ctx, p.entry.prefix+t.After, p.since+1)
}

func (p *place) Announce() { p.announce(p.entry) }

// awaitEvent waits until a key is deleted or written, or may be: a member that hangs, or that has lost its leader,
// sends no events.
func (c *claim) awaitEvent(ctx context.Context, key string, from int64, options ...clientv3.OpOption) error {
	watching, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	events := c.session.client.etcd.Watch(watching, key, append(options, clientv3.WithRev(from))...)
	again := time.NewTimer(c.session.lease / renewals)
	defer again.Stop()
	for {
		select {
		case r, open := <-events:
			if !open || r.Err() != nil {
				events = nil
				again.Reset(retryEvery)
			} else if len(r.Events) > 0 {
				return nil
			}
		case <-again.C:
			return nil
		case <-c.session.Done():
			return sessions.ErrEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// grant makes the hold of the keys whose turn it is. It waits for an overdue keepalive: none counts while the
// cluster has no leader, so a waiter whose turn comes right afterwards would hold the lock for the rest of its lease.
func (q *queue) grant(ctx context.Context, c *claim) (*Hold, error) {
	if err := c.session.AwaitRecent(ctx); err != nil {
		return nil, err
	}
	h := newHold(ctx, q, c)
	if err := h.begin(); err != nil {
		return nil, err
	}
	return h, nil
}
