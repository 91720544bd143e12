package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/queues"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// queue is how requests of one kind are served: each has a key in the queue of every lock that it is for.
type queue struct {
	client *Client
	names  []string // of the locks
	kind   queues.Kind
}

func (q *queue) acquire(ctx context.Context, owner string, wait bool) (*Hold, error) {
	h, err := q.attempt(ctx, owner, wait)
	if err != nil {
		return nil, fmt.Errorf("acquire lock %q: %w", q.names[0], err)
	}
	return h, nil
}

func (q *queue) attempt(ctx context.Context, owner string, wait bool) (*Hold, error) {
	for _, name := range q.names {
		if name == "" || strings.ContainsAny(name, "/\x00") {
			return nil, errors.New("the name must not be empty or have a slash")
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
			if err := q.await(ctx, c, e, wait); err != nil {
				return nil, err
			}
		}
	}
	return q.grant(ctx, c)
}

// await waits until it is the turn of one key.
func (q *queue) await(ctx context.Context, c *claim, e entry, wait bool) error {
	for {
		t, since, err := q.turn(ctx, c, e)
		switch {
		case err != nil:
		case t.Now:
			if t.Announce {
				c.announce(e)
			}
			return nil
		case !wait:
			return lock.ErrHeld
		case t.Any:
			err = c.awaitEvent(ctx, e.prefix, since+1, clientv3.WithPrefix(), clientv3.WithFilterPut())
		default: // a put is the announcement that it has the lock, too
			err = c.awaitEvent(ctx, e.prefix+t.After, since+1)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return fmt.Errorf("%w: %w", lock.ErrHeld, ctx.Err())
		case err != nil:
			return err
		}
	}
}

// turn is the place of a key among all keys of its lock, and the revision at which it was there.
func (q *queue) turn(ctx context.Context, c *claim, e entry) (t queues.Turn, revision int64, err error) {
	options := []clientv3.OpOption{
		clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend), clientv3.WithKeysOnly(),
	}
	if q.kind.Last {
		options = append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(c.revision-1), clientv3.WithKeysOnly())
	}
	reply, err := repeat(ctx, c.session, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return c.session.client.etcd.Txn(ctx).If(c.there(e)).Then(clientv3.OpGet(e.prefix, options...)).Commit()
	})
	switch {
	case err != nil:
		return t, 0, err
	case !reply.Succeeded:
		return t, 0, errRemoved
	}
	var names []string
	for _, kv := range reply.Responses[0].GetResponseRange().Kvs {
		names = append(names, strings.TrimPrefix(string(kv.Key), e.prefix))
	}
	if q.kind.Last {
		names = append(names, e.name)
	}
	return q.kind.Turn(e.name, names), reply.Header.Revision, nil
}

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
