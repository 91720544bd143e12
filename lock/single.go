package lock

import (
	"context"
	"time"
)

// single keeps locks on one master. It is also one voter of a quorum.
type single struct {
	node         *node
	scripts      *mutexScripts
	tombstoneTTL int64 // milliseconds
}

var _ store = (*single)(nil)

// message is a request of the most frequent kinds, in one allocation.
type message struct {
	claim     claim
	tombstone string
	args      [11]any
}

func (s *single) acquire(ctx context.Context, c claim) (grant, error) {
	m := &message{claim: c, tombstone: c.tombstoneKey()}
	script := s.scripts.acquire
	args := append(m.args[:0], "evalsha", nil, 2, m.claim.key, m.tombstone)
	if c.fenced {
		script, args[2] = s.scripts.acquireFenced, 3
		args = append(args, c.tokenKey())
	}
	args[1] = script.name
	args = append(args, m.claim.id)
	flags := flags(c.nonReentrant, c.notify)
	more := flags != "" || c.metadata != ""
	if more || c.owner != c.id || c.lease != s.scripts.lease {
		args = append(args, m.claim.lease)
	}
	if more || c.owner != c.id {
		args = append(args, m.claim.owner)
	}
	if more {
		args = append(args, flags)
	}
	if c.metadata != "" {
		args = append(args, "", m.claim.metadata)
	}
	sent := time.Now()
	value, err := s.node.doSafe(ctx, call{script: script, command: args})
	if isMigrating(err) {
		return s.acquireMigrating(ctx, c)
	}
	return decodeGrant(value, err, sent)
}

// decodeGrant reads the reply to an acquire that was sent at sent.
func decodeGrant(value any, err error, sent time.Time) (grant, error) {
	if err != nil {
		return grant{}, err
	}
	r, err := decode(value, 1)
	if err == nil {
		err = r.err()
	}
	count := max(r.int(1), 1) // the reply for a free lock is the token alone
	return grant{
		ok:      r.code == codeOK,
		granted: granted{r.int(0), int(count), sent},
		why:     ErrHeld,
		ttl:     time.Duration(r.int(2)) * time.Millisecond,
	}, err
}

func (s *single) release(ctx context.Context, c claim) (int, error) {
	value, err := s.node.do(ctx, s.releaseCall(c))
	if isMigrating(err) {
		return s.releaseMigrating(ctx, c)
	}
	return decodeRelease(value, err)
}

func (s *single) releaseCall(c claim) call {
	m := &message{claim: c, tombstone: c.tombstoneKey()}
	args := append(m.args[:0], "evalsha", s.scripts.release.name, 3, m.claim.key, m.tombstone, c.freeChannel())
	if c.oldTombstone != "" {
		args[2] = 4
		args = append(args, m.claim.oldTombstone)
	}
	args = append(args, m.claim.id)
	if c.publish != notifyNone || c.owner != c.id {
		args = append(args, s.tombstoneTTL, m.claim.owner)
	}
	if c.publish != notifyNone {
		args = append(args, flags(false, c.publish))
	}
	return call{script: s.scripts.release, command: args}
}

// decodeRelease reads the reply to a release: the holds that are left to the owner, or a negative code.
func decodeRelease(value any, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	r, err := decode(value, 1)
	if r.code == codeUnsure {
		return 0, errUnsure
	}
	if r.code < 0 {
		return int(r.code), err
	}
	return int(r.int(0)), err
}

func (s *single) kind() string { return "lock" }

func (s *single) renew(ctx context.Context, claims []claim) []renewal {
	return renewAll(ctx, s.node, claims, func(some []claim) call {
		c := call{script: renewScript}
		for _, cl := range some {
			c.keys = append(c.keys, cl.key)
			c.args = append(c.args, cl.id, cl.lease)
		}
		return c
	})
}
