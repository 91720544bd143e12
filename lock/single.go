package lock

import (
	"cmp"
	"context"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wait"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// single keeps locks on one master. It is also one voter of a quorum.
type single struct {
	node         *node
	scripts      *mutexScripts
	tombstoneTTL int64 // milliseconds
}

var _ store = (*single)(nil)

// words are the parts of the commands about a plain mutex, which are made once.
type words struct {
	key, hold any
	set       [6]any
}

// isPlain reports whether SET can acquire a free lock for c: the key then says all there is to say. The script is for
// locks that are held, and for all else.
func (c *claim) isPlain() bool {
	return c.owner == c.id && !c.fenced && c.metadata == "" && c.layout == OwnLayout
}

// acquirePlain acquires the lock if the key does not exist. Replicas are not waited for.
//
// SET looks for no tombstone: a SET that arrives after its hold was released makes a lock of nobody. Its tombstone then
// lasts until that has expired, and the scripts treat such a lock as free.
func (s *single) acquirePlain(ctx context.Context, c claim) (grant, error) {
	lease := s.scripts.leaseWord
	if c.lease != s.scripts.lease {
		lease = c.lease
	}
	w := &words{key: c.key, hold: c.value}
	w.set = [...]any{"set", w.key, w.hold, "px", lease, "nx"}
	sent := time.Now()
	value, err := s.node.Do(ctx, wire.Call{Command: w.set[:]})
	return grant{ok: value == "OK", why: ErrHeld, plain: w, granted: granted{count: 1, sent: sent}}, err
}

func (s *single) acquire(ctx context.Context, c claim) (grant, error) {
	if c.plain && c.handed == nil && !s.node.WaitsForReplicas() {
		if g, err := s.acquirePlain(ctx, c); err != nil || g.ok || c.setOnly {
			return g, err
		}
	}
	var value any
	var err error
	sent := time.Now()
	if h := c.handed; h != nil {
		a := s.node.Judged(h.Pipe.Await(ctx, h.Request))
		value, err, sent = a.Value, a.Err, h.Sent
	} else {
		value, err = s.node.DoSafe(ctx, s.acquireCall(c))
	}
	if isMigrating(err) {
		return s.acquireMigrating(ctx, c)
	}
	g, err := decodeGrant(value, err, sent)
	return s.node.fence(ctx, c, g, err)
}

// acquireCall is the script that acquires c.
func (s *single) acquireCall(c claim) wire.Call {
	script := s.scripts.acquire
	args := append(make([]any, 0, 11), "evalsha", nil, 2, c.key, c.tombstoneKey())
	if c.fenced {
		script, args[2] = s.scripts.acquireFenced, 3
		args = append(args, c.tokenKey())
	}
	args[1] = script.Name
	args = append(args, c.id)
	flags := flags(c.nonReentrant, c.notify)
	more := flags != "" || c.metadata != ""
	if more || c.owner != c.id || c.lease != s.scripts.lease {
		args = append(args, c.lease)
	}
	if more || c.owner != c.id {
		args = append(args, c.owner)
	}
	if more {
		args = append(args, flags)
	}
	if c.metadata != "" {
		args = append(args, "", c.metadata)
	}
	return wire.Call{Script: script, Command: args}
}

// grant sends the script that acquires a lock, whose writes are to reach replicas.
func (n *node) grant(ctx context.Context, c wire.Call) (grant, error) {
	sent := time.Now()
	value, err := n.DoSafe(ctx, c)
	return decodeGrant(value, err, sent)
}

// decodeGrant reads the reply to an acquire that was sent at sent.
func decodeGrant(value any, err error, sent time.Time) (grant, error) {
	if err != nil {
		return grant{}, err
	}
	r, err := decode(value, 1)
	err = cmp.Or(err, codeError(r))
	count := max(r.Int(1), 1) // the reply for a free lock is the token alone
	return grant{
		ok:      r.Code == wire.CodeOK,
		granted: granted{token: r.Int(0), count: int(count), sent: sent},
		why:     ErrHeld,
		ttl:     time.Duration(r.Int(2)) * time.Millisecond,
	}, err
}

func (s *single) release(ctx context.Context, c claim) (int, error) {
	a, done := s.handOver(ctx, c)
	if !done {
		a.Value, a.Err = s.node.Do(ctx, s.releaseCall(c))
	}
	if isMigrating(a.Err) {
		return s.releaseMigrating(ctx, c)
	}
	return decodeRelease(a.Value, a.Err)
}

func (s *single) releaseCall(c claim) wire.Call {
	script, w := s.scripts.release, c.words
	if w != nil {
		script = s.scripts.releasePlain
	} else {
		w = &words{key: c.key, hold: "h:" + c.id}
	}
	tombstone := c.tombstone
	if tombstone == nil {
		tombstone = c.tombstoneKey()
	}
	old := c.oldTombstones
	args := append(make([]any, 0, 8+len(old)), "evalsha", script.Name, 2+len(old), w.key, tombstone)
	args = append(append(args, old...), w.hold)
	if c.publish != wait.NotifyNone || c.owner != c.id || c.late || c.words != nil && !c.outlasts {
		args = append(args, s.tombstoneTTLOf(c), c.owner)
	}
	if c.publish != wait.NotifyNone {
		args = append(args, flags(false, c.publish))
	}
	return wire.Call{Script: script, Command: args}
}

// tombstoneTTLOf is for how many milliseconds the tombstone of c lasts: longer than a lock of nobody that a late SET
// makes.
func (s *single) tombstoneTTLOf(c claim) int64 {
	if c.late {
		return s.tombstoneTTL + c.lease
	}
	return s.tombstoneTTL
}

// decodeRelease reads the reply to a release: the holds that are left to the owner, or a negative code.
func decodeRelease(value any, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	r, err := decode(value, 1)
	if r.Code == codeUnsure {
		return 0, errUnsure
	}
	if r.Code < 0 {
		return int(r.Code), err
	}
	return int(r.Int(0)), err
}

func (s *single) kind() string { return "lock" }

func (s *single) renew(ctx context.Context, claims []claim) []renewal {
	request := func(some []claim) wire.Call {
		c := wire.Call{Script: renewScript}
		for _, cl := range some {
			c.Keys = append(c.Keys, cl.key)
			c.Args = append(c.Args, cl.field(), cl.lease)
		}
		return c
	}
	return renewAll(ctx, s.node, claims, request, func(c claim) wire.Call { return request([]claim{c}) })
}
