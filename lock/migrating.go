package lock

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// While a slot of a cluster migrates, its keys are at two masters, and a script that names one that does not
// exist is refused (TRYAGAIN), which a tombstone does not. Then a mutex is acquired and released by several
// requests that name one key each. No client sees a difference, except that a release whose reply is lost may
// stay unknown. A semaphore without leases and a latch are one hash: see doCounted.

// errUnsure is the error of a release that was begun by an earlier request, whose reply was lost.
var errUnsure = &requestError{broken, errors.New("an earlier request has released the hold, or it had ended before")}

// isMigrating reports whether a server refused a request because its keys may be at two masters.
func isMigrating(err error) bool { return err != nil && strings.Contains(err.Error(), "TRYAGAIN") }

func (s *single) acquireMigrating(ctx context.Context, c claim) (grant, error) {
	sent := time.Now()
	value, err := s.node.doSafe(ctx, call{
		script: s.scripts.acquire,
		keys:   []string{c.key},
		args:   []any{c.id, c.lease, c.owner, flags(c.nonReentrant, c.notify), c.tombstoneKey(), c.metadata},
	})
	g, err := decodeGrant(value, err, sent)
	if err != nil || !g.ok || g.token > 0 || !c.fenced {
		return g, err
	}
	g.token, err = s.mint(ctx, c)
	if err != nil { // the lock is held, and the request may be sent again
		err = &requestError{unknown, err}
	}
	return g, err
}

// mint gives the grant of c a fencing token: the lock is held, so that no other grant gets one meanwhile.
func (s *single) mint(ctx context.Context, c claim) (int64, error) {
	value, err := s.node.doSafe(ctx, call{script: mintScript, keys: []string{c.tokenKey()}})
	var r reply
	if err == nil {
		r, err = decode(value, 1)
	}
	if err == nil {
		value, err = s.node.doSafe(ctx, call{script: tokenScript, keys: []string{c.key}, args: []any{c.id, r.int(0)}})
	}
	if err == nil {
		r, err = decode(value, 1)
	}
	if err == nil && r.code == codeNotHeld {
		err = ErrLost
	}
	return r.int(0), err
}

func (s *single) releaseMigrating(ctx context.Context, c claim) (int, error) {
	before, err := s.record(ctx, c, codeUnsure)
	begun := before.int(0) == codeUnsure
	if err != nil || len(before.list) > 0 && !begun {
		return int(before.int(0)), err
	}
	value, err := s.node.do(ctx, call{
		script: s.scripts.release,
		keys:   []string{c.key},
		args:   []any{"h:" + c.id, s.tombstoneTTLOf(c), c.owner, flags(false, c.publish), c.freeChannel()},
	})
	left, err := decodeRelease(value, err)
	if err == nil && left < 0 && begun {
		err = errUnsure
	}
	if err != nil {
		return 0, err
	}
	_, _ = s.record(ctx, c, left) // without it, a later request gets errUnsure
	return left, nil
}

// record leaves the tombstone of c, and returns that which was there before.
func (s *single) record(ctx context.Context, c claim, left int) (reply, error) {
	value, err := s.node.do(ctx, call{
		script: recordScript, keys: []string{c.tombstoneKey()}, args: []any{s.tombstoneTTLOf(c), left},
	})
	if err != nil {
		return reply{}, err
	}
	return decode(value, 0)
}

// counting is how the reply to a request of [doCounted] came.
type counting struct {
	migrating bool // the slot migrates
	repeated  bool // the reply is that of an earlier request with the same tombstone
}

// doCounted sends c, whose keys are a hash that counts and a tombstone. While their slot migrates, they may be at two
// masters: then the tombstone is looked up by a request of its own, and becomes the last argument of a request that
// names the hash alone, where its reply is kept (tombstone.lua). Requests about other keys are just sent.
func doCounted(ctx context.Context, send func(context.Context, call) (any, error), c call) (any, counting, error) {
	value, err := send(ctx, c)
	if !isMigrating(err) || !c.counted {
		return value, counting{}, err
	}
	before, err := send(ctx, call{command: []any{"get", c.keys[1]}})
	if err != nil {
		return nil, counting{}, err
	}
	if text, ok := before.(string); ok {
		var reply []any
		for _, word := range strings.Fields(text) {
			n, _ := strconv.ParseInt(word, 10, 64)
			reply = append(reply, n)
		}
		return reply, counting{true, true}, nil
	}
	c.keys, c.args = c.keys[:1], append(slices.Clone(c.args), c.keys[1])
	value, err = send(ctx, c)
	return value, counting{migrating: true}, err
}
