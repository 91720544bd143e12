package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockchaos/lockchaos/lock"
)

// entry is a key of one request, in the queue of one lock. Its name is the id of the request, which no other has, and
// what it is for: 5J4…-lock.
type entry struct{ prefix, name string }

func (e entry) key() string { return e.prefix + e.name }

// claim is one request: its keys, which are created and removed together.
type claim struct {
	session  *session
	owner    string
	entries  []entry
	mark     string // a key; while it is there, the keys cannot be created; its text may prove that they were deleted
	revision int64  // of their creation; 0: it is not known
	asked    bool   // their creation was sent
	unsure   bool   // a creation was not answered: it may be executed at any later time
}

func newClaim(s *session, q *queue, owner string) *claim {
	root, id := q.client.o.Root, rand.Text()
	c := &claim{session: s, owner: owner, mark: root + ".undone/" + id}
	for _, name := range q.names {
		c.entries = append(c.entries, entry{root + "/" + name + "/", id + "-" + q.kind.Word})
	}
	return c
}

// create creates the keys, all or none, once, however often the request is sent. True: each is the first of its lock.
func (c *claim) create(ctx context.Context) (first bool, err error) {
	conditions := []clientv3.Cmp{absent(c.mark)}
	var puts, oldest []clientv3.Op
	for _, e := range c.entries {
		conditions = append(conditions, absent(e.key()))
		puts = append(puts, clientv3.OpPut(e.key(), c.owner, clientv3.WithLease(c.session.id)))
		oldest = append(oldest, clientv3.OpGet(e.prefix, append(clientv3.WithFirstCreate(), clientv3.WithKeysOnly())...))
	}
	own := clientv3.OpGet(c.entries[0].key(), clientv3.WithKeysOnly())
	c.asked = true
	reply, err := repeat(ctx, c.session, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		reply, err := c.session.client.etcd.Txn(ctx).If(conditions...).
			Then(append(puts, oldest...)...).Else(append(oldest, own)...).Commit()
		c.unsure = c.unsure || unanswered(err)
		return reply, err
	})
	if err != nil {
		if !unanswered(err) && !c.unsure { // refused
			c.asked = false
		}
		return false, c.session.explain(err)
	}
	c.revision = reply.Header.Revision
	ranges := reply.Responses[len(puts):]
	if !reply.Succeeded { // an earlier request has created them
		kvs := reply.Responses[len(oldest)].GetResponseRange().Kvs
		if len(kvs) == 0 {
			return false, errRemoved
		}
		c.revision, ranges = kvs[0].CreateRevision, reply.Responses
	}
	first = true
	for i, e := range c.entries {
		kvs := ranges[i].GetResponseRange().Kvs
		first = first && len(kvs) > 0 && string(kvs[0].Key) == e.key()
	}
	return first, nil
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

// there says that a key is there, as it was created.
func (c *claim) there(e entry) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(e.key()), "=", c.revision)
}

// announce writes a key that has its permits, which wakes the next request: its permits may be free, too, and it has to
// watch all keys before it now.
func (c *claim) announce(e entry) {
	c.session.Tasks.Go(func() {
		_, _ = repeat(context.Background(), c.session, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return c.session.client.etcd.Txn(ctx).If(c.there(e)).
				Then(clientv3.OpPut(e.key(), c.owner, clientv3.WithLease(c.session.id))).Commit()
		})
	})
}

// remove deletes the keys until that is answered or the session ends. If prove, was says whether they were there;
// false: one was not, or the lease has ended. The mark that the deletion leaves proves an earlier request whose reply
// was lost; it lasts until the next release of the session. If a creation was not answered, a mark is left until the
// lease ends, and with it the creation can no longer be executed.
func (c *claim) remove(ctx context.Context, prove bool) (was bool, err error) {
	var all []clientv3.Cmp
	var do []clientv3.Op
	for _, e := range c.entries {
		all = append(all, c.there(e))
		do = append(do, clientv3.OpDelete(e.key()))
	}
	for _, mark := range c.session.takeMarks() {
		do = append(do, clientv3.OpDelete(mark))
	}
	mark := func(text string) clientv3.Op { return clientv3.OpPut(c.mark, text, clientv3.WithLease(c.session.id)) }
	then, other := do, append([]clientv3.Op{clientv3.OpGet(c.mark)}, do...)
	if c.unsure || prove {
		then = append(slices.Clone(do), mark(removed))
	}
	if c.unsure {
		other = append(other, clientv3.OpTxn([]clientv3.Cmp{absent(c.mark)}, []clientv3.Op{mark("")}, nil))
	}
	reply, err := repeat(ctx, c.session, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return c.session.client.etcd.Txn(ctx).If(all...).Then(then...).Else(other...).Commit()
	})
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound): // the keys have ended with it, and cannot be created any more
		return false, nil
	case err != nil:
		return false, err
	case prove && !c.unsure:
		c.session.keepMark(c.mark)
	}
	if was = reply.Succeeded; !was {
		kvs := reply.Responses[0].GetResponseRange().Kvs
		was = len(kvs) > 0 && string(kvs[0].Value) == removed
	}
	return was, nil
}

// removed is the text of a mark that was written when the keys were deleted.
const removed = "removed"
