package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// Mutex is a lock that one owner holds at a time, first come, first served. Several goroutines may use it: each Acquire
// is an owner of its own. It is not reentrant.
type Mutex struct {
	client *Client
	name   string
}

// Mutex is the lock of that name: the keys that begin with Options.Root/name/. The name must have no slash.
func (c *Client) Mutex(name string) *Mutex { return &Mutex{client: c, name: name} }

// Acquire waits for the lock until ctx ends. Its error is [lock.ErrHeld] if others had it all the time,
// [lock.ErrClosed], that of the servers, and [lock.ErrUnknown] if it was not certain in time that the key of the
// acquire is gone: then it is removed in the background, or ends with the lease. The context of the hold is a
// child of ctx. The value of the key is owner, for people and tools; it may be empty.
func (m *Mutex) Acquire(ctx context.Context, owner string) (*Hold, error) {
	return m.acquire(ctx, owner, true)
}

// TryAcquire takes the lock if it is free now. Errors are those of Acquire.
func (m *Mutex) TryAcquire(ctx context.Context, owner string) (*Hold, error) {
	return m.acquire(ctx, owner, false)
}

func (m *Mutex) acquire(ctx context.Context, owner string, wait bool) (*Hold, error) {
	h, err := m.attempt(ctx, owner, wait)
	if err != nil {
		return nil, fmt.Errorf("acquire lock %q: %w", m.name, err)
	}
	return h, nil
}

func (m *Mutex) attempt(ctx context.Context, owner string, wait bool) (*Hold, error) {
	if m.name == "" || strings.ContainsAny(m.name, "/\x00") {
		return nil, errors.New("the name must not be empty or have a slash")
	}
	s, err := m.client.sessions.Session(ctx)
	if err != nil {
		return nil, err
	}
	e := newEntry(s, m.name)
	h, err := m.obtain(ctx, e, owner, wait)
	if err == nil {
		return h, nil
	}
	if !e.asked {
		return nil, err
	}
	return nil, s.Undo(err, func() error {
		_, err := e.remove(context.Background())
		return err
	})
}

// obtain creates the key and waits until it is the first.
func (m *Mutex) obtain(ctx context.Context, e *entry, owner string, wait bool) (*Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	first, err := e.create(ctx, owner)
	if err != nil {
		return nil, err
	}
	for !first {
		if !wait {
			return nil, lock.ErrHeld
		}
		previous, since, err := e.predecessor(ctx)
		if err == nil && previous != "" {
			err = e.awaitGone(ctx, previous, since+1)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %w", lock.ErrHeld, ctx.Err())
		case err != nil:
			return nil, err
		}
		first = previous == ""
	}
	return m.grant(ctx, e, owner)
}

// grant makes the hold of the first key of the lock. It waits for an overdue keepalive: none counts while the
// cluster has no leader, so a waiter whose turn comes right afterwards would hold the lock for the rest of its lease.
func (m *Mutex) grant(ctx context.Context, e *entry, owner string) (*Hold, error) {
	if err := e.session.AwaitRecent(ctx); err != nil {
		return nil, err
	}
	h := newHold(ctx, m, e, owner)
	if err := h.core.Begin(); err != nil {
		return nil, err
	}
	return h, nil
}

// entry is the key of one acquire.
type entry struct {
	session  *session
	prefix   string // of all keys of the lock
	key      string // no other acquire has it
	mark     string // a key; while it is there, the entry cannot be created
	revision int64  // of its creation; 0: it is not known
	asked    bool   // its creation was sent
	unsure   bool   // a creation was not answered: it may be executed at any later time
}

func newEntry(s *session, name string) *entry {
	root, id := s.client.o.Root, rand.Text()
	prefix := root + "/" + name + "/"
	return &entry{session: s, prefix: prefix, key: prefix + id, mark: root + ".undone/" + id}
}

// create creates the key, once, however often the request is sent. True: it is the first of the lock.
func (e *entry) create(ctx context.Context, owner string) (first bool, err error) {
	oldest := clientv3.OpGet(e.prefix, append(clientv3.WithFirstCreate(), clientv3.WithKeysOnly())...)
	e.asked = true
	reply, err := repeat(ctx, e.session, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		reply, err := e.session.client.etcd.Txn(ctx).
			If(absent(e.key), absent(e.mark)).
			Then(clientv3.OpPut(e.key, owner, clientv3.WithLease(e.session.id)), oldest).
			Else(clientv3.OpGet(e.key, clientv3.WithKeysOnly()), oldest).
			Commit()
		e.unsure = e.unsure || unanswered(err)
		return reply, err
	})
	if err != nil {
		if !unanswered(err) && !e.unsure { // refused
			e.asked = false
		}
		return false, e.session.explain(err)
	}
	e.revision = reply.Header.Revision
	if !reply.Succeeded { // an earlier request has created it
		kvs := reply.Responses[0].GetResponseRange().Kvs
		if len(kvs) == 0 {
			return false, errRemoved
		}
		e.revision = kvs[0].CreateRevision
	}
	kvs := reply.Responses[1].GetResponseRange().Kvs
	return len(kvs) > 0 && string(kvs[0].Key) == e.key, nil
}

func absent(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), "=", 0) }

// explain ends the session if err says that the servers have ended its lease.
func (s *session) explain(err error) error {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.End(lock.ErrLost)
		return fmt.Errorf("%w: %w", lock.ErrLost, err)
	}
	return err
}

// errRemoved: somebody has deleted the key, or its lease has ended.
var errRemoved = fmt.Errorf("%w: its key was removed while it waited", lock.ErrLost)

// there says that the key is there, as it was created.
func (e *entry) there() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(e.key), "=", e.revision)
}

// predecessor is the key before this one, and the revision at which it was; "" if this one is the first.
func (e *entry) predecessor(ctx context.Context) (key string, revision int64, err error) {
	before := append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(e.revision-1), clientv3.WithKeysOnly())
	reply, err := repeat(ctx, e.session, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return e.session.client.etcd.Txn(ctx).If(e.there()).Then(clientv3.OpGet(e.prefix, before...)).Commit()
	})
	switch {
	case err != nil:
		return "", 0, err
	case !reply.Succeeded:
		return "", 0, errRemoved
	}
	if kvs := reply.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		key = string(kvs[0].Key)
	}
	return key, reply.Header.Revision, nil
}

// awaitGone waits until a key is deleted, or may be: a member that hangs, or that has lost its leader, sends no events.
func (e *entry) awaitGone(ctx context.Context, key string, from int64) error {
	watching, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	events := e.session.client.etcd.Watch(watching, key, clientv3.WithRev(from), clientv3.WithFilterPut())
	again := time.NewTimer(e.session.lease / renewals)
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
		case <-e.session.Done():
			return sessions.ErrEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// remove deletes the key until that is answered or the session ends. False: it was not there at the first request. If a
// creation was not answered, the mark is left until the lease ends, and with it the creation can no longer be executed.
func (e *entry) remove(ctx context.Context) (was bool, err error) {
	do := []clientv3.Op{clientv3.OpDelete(e.key)}
	if e.unsure {
		do = append(do, clientv3.OpPut(e.mark, "", clientv3.WithLease(e.session.id)))
	}
	asked := false
	reply, err := repeat(ctx, e.session, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		reply, err := e.session.client.etcd.Txn(ctx).If(e.there()).Then(do...).Else(do...).Commit()
		// by the request that was not answered: the session has not ended, and nobody else deletes it
		was = was || asked
		asked = true
		return reply, err
	})
	if errors.Is(err, rpctypes.ErrLeaseNotFound) { // the key has ended with it, and cannot be created any more
		return was, nil
	}
	return err == nil && (was || reply.Succeeded), err
}
