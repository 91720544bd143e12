package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/queues"
)

// entry is a key of one request, in the queue of one lock. Its name is the id of the request, which no other has at the
// same time, and its purpose: 5J4…-lock.
type entry struct{ prefix, name string }

func (e entry) key() string { return e.prefix + e.name }

// claim is one request: its keys, which are created and removed together.
type claim struct {
	session  *session
	owner    string
	entries  []entry
	id       string // no other has it, except claims that have certainly ended
	barrier  string // a key; while it is there, the keys cannot be created
	revision int64  // of their creation; 0: it is not known
	asked    bool   // their creation was sent
	unsure   bool   // a creation was not answered: it may be executed at any later time
	deleting bool   // a deletion was not answered: it may be executed at any later time
}

// newClaim makes a claim. It uses the keys of an earlier one again if it can: servers keep the names of deleted keys in
// memory until a compaction, and go through the names of a lock for each request to it.
func newClaim(s *session, q *queue, owner string) *claim {
	root, id := q.client.o.Root, s.ids.Take()
	if id == "" {
		id = rand.Text()
	}
	c := &claim{session: s, owner: owner, id: id, barrier: root + "/.undone/" + id}
	for _, name := range q.names {
		c.entries = append(c.entries, entry{root + "/" + name + "//", id + "-" + q.kind.Word})
	}
	return c
}

// create creates the keys, all or none, once, however often the request is sent. True: each is the first of its lock.
func (c *claim) create(ctx context.Context) (first bool, err error) {
	conditions := []clientv3.Cmp{absent(c.barrier)}
	var puts, oldest []clientv3.Op
	for _, e := range c.entries {
		conditions = append(conditions, absent(e.key()))
		puts = append(puts, clientv3.OpPut(e.key(), c.owner, clientv3.WithLease(c.session.id)))
		oldest = append(oldest, clientv3.OpGet(e.prefix, append(clientv3.WithFirstCreate(), clientv3.WithKeysOnly())...))
	}
	own := clientv3.OpGet(c.entries[0].key(), clientv3.WithKeysOnly())
	c.asked = true
	reply, err := repeat(ctx, c.session, func(ctx context.Context, kv clientv3.KV) (*clientv3.TxnResponse, error) {
		reply, err := kv.Txn(ctx).If(conditions...).
			Then(append(puts, oldest...)...).Else(append(oldest, own)...).Commit()
		c.unsure = c.unsure || unanswered(err)
		return reply, err
	})
	if err != nil {
		if !unanswered(err) && !full(err) && !c.unsure { // refused
			c.asked = false
		}
		return false, c.session.explain(err)
	}
	c.revision = reply.Header.Revision
	ranges := reply.Responses[len(puts):]
	if !reply.Succeeded { // an earlier request has created them
		kvs := reply.Responses[len(oldest)].GetResponseRange().Kvs
		if len(kvs) == 0 {
			return false, queues.ErrRemoved()
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

// full reports whether the database of the servers is full. The request that uses up its quota is executed and has this
// answer, too; a deletion is executed without it.
func full(err error) bool { return errors.Is(err, rpctypes.ErrNoSpace) }

func absent(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), "=", 0) }

// explain ends the session if err says that the servers have ended its lease.
func (s *session) explain(err error) error {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.End(lock.ErrLost)
		return fmt.Errorf("%w: %w", lock.ErrLost, err)
	}
	return err
}

// there says that a key is there, as it was created.
func (c *claim) there(e entry) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(e.key()), "=", c.revision)
}

// announce writes a key that has its permits, which wakes the next request: its permits may be free, too, and it has to
// watch all keys before it now.
func (c *claim) announce(e entry) {
	c.session.Tasks.Go(func() {
		put := clientv3.OpPut(e.key(), c.owner, clientv3.WithLease(c.session.id))
		_, _ = repeat(context.Background(), c.session, func(ctx context.Context, kv clientv3.KV) (any, error) {
			return kv.Txn(ctx).If(c.there(e)).Then(put).Commit()
		})
	})
}

// remove deletes the keys until that is answered or the session ends, as release does without proof.
func (c *claim) remove(ctx context.Context) error {
	_, err := c.removal(ctx, "", false)
	return err
}

// release repeats the deletion of the keys until it is answered or the session ends, and reports whether they
// existed; false: one did not, or the lease has ended. The deletion writes a mark with the id of the hold, which
// proves an earlier request whose reply was lost; a full database has no room for one. The id of the claim may be
// reused if no request of this claim can still be executed.
func (c *claim) release(ctx context.Context) (was bool, err error) {
	mark := c.session.marks.Take()
	if mark == "" {
		mark = c.session.client.o.Root + "/.released/" + c.id
	}
	reply, err := c.removal(ctx, mark, true)
	if full(err) {
		reply, err = c.removal(ctx, mark, false)
	}
	if err != nil || reply == nil {
		return false, err
	}
	c.session.marks.Keep(mark)
	if reply.Succeeded {
		if !c.unsure && !c.deleting {
			c.session.ids.Keep(c.id)
		}
		return true, nil
	}
	kvs := reply.Responses[0].GetResponseRange().Kvs
	return len(kvs) > 0 && string(kvs[0].Value) == c.proof(), nil
}

// proof is the value that the release of the claim writes to a mark: no other claim has this id and revision.
func (c *claim) proof() string { return c.id + "@" + strconv.FormatInt(c.revision, 10) }

// removal deletes the keys. If they exist as they were created, it may write a mark; otherwise the first response is
// that mark ("": there is none). If a creation was not answered, a barrier key stays until the lease ends, so the
// creation can no longer be executed. If it returns neither a reply nor an error, the lease has ended, and the keys
// with it.
func (c *claim) removal(ctx context.Context, mark string, write bool) (*clientv3.TxnResponse, error) {
	var all []clientv3.Cmp
	var do, first []clientv3.Op
	for _, e := range c.entries {
		all = append(all, c.there(e))
		do = append(do, clientv3.OpDelete(e.key()))
	}
	put := func(key, text string) clientv3.Op { return clientv3.OpPut(key, text, clientv3.WithLease(c.session.id)) }
	if c.unsure {
		do = append(do, put(c.barrier, ""))
	}
	then := slices.Clone(do)
	if write {
		then = append(then, put(mark, c.proof()))
	}
	if mark != "" {
		first = append(first, clientv3.OpGet(mark))
	}
	reply, err := repeat(ctx, c.session, func(ctx context.Context, kv clientv3.KV) (*clientv3.TxnResponse, error) {
		reply, err := kv.Txn(ctx).If(all...).Then(then...).Else(append(first, do...)...).Commit()
		c.deleting = c.deleting || unanswered(err)
		return reply, err
	})
	if errors.Is(err, rpctypes.ErrLeaseNotFound) { // the keys can no longer be created either
		return nil, nil //nolint:nilnil // documented
	}
	return reply, err
}
