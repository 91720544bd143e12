package lock

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// While a slot of a cluster migrates, its keys are on two masters, and a script is refused (TRYAGAIN) if it names a
// key that does not exist, such as a tombstone. In that time a lock is acquired and released by several requests that
// name one key each. No client sees a difference, except that a release whose reply is lost may stay unknown. A
// semaphore without leases and a latch are one hash: see doCounted.
//
// Each lock has one key that decides who holds it: its hash, or the set of leased permits. When a request reaches
// that key, the other keys may have changed since it read them, so they never decide exclusion, only order.

// errUnsure is the error of a release that was begun by an earlier request, whose reply was lost.
var errUnsure = &requestError{
	wire.Broken, errors.New("an earlier request has released the hold, or it had ended before"),
}

// isMigrating reports whether a server refused a request because its keys may be at two masters.
func isMigrating(err error) bool { return err != nil && strings.Contains(err.Error(), "TRYAGAIN") }

// acquireMigrating decides by the hash alone. A waiter that is refused polls: the message of a release may be sent by a
// master that the waiter is not subscribed at.
func (s *single) acquireMigrating(ctx context.Context, c claim) (grant, error) {
	sent := time.Now()
	value, err := s.node.DoSafe(ctx, wire.Call{
		Script: s.scripts.acquire,
		Keys:   []string{c.key},
		Args:   []any{c.id, c.lease, c.owner, flags(c.nonReentrant, c.notify), c.tombstoneKey(), c.metadata},
	})
	g, err := decodeGrant(value, err, sent)
	if !g.ok {
		g.ttl = pollUnsubscribed
	}
	return s.node.fence(ctx, c, g, err)
}

// fence gives a grant the fencing token that it lacks because the hash alone decided it, perhaps for an earlier request
// that got no further before the slot had migrated.
func (n *node) fence(ctx context.Context, c claim, g grant, err error) (grant, error) {
	if err != nil || !g.ok || g.token > 0 || !c.fenced {
		return g, err
	}
	g.token, err = n.mint(ctx, c)
	return g, afterGrant(err)
}

// mint gives the grant of c a fencing token: the lock is held, so that no other grant gets one meanwhile.
func (n *node) mint(ctx context.Context, c claim) (int64, error) {
	r, err := n.onKey(ctx, mintScript, c.tokenKey())
	if err != nil {
		return 0, err
	}
	return n.giveToken(ctx, tokenScript, c.key, c.id, r.Int(0))
}

// giveToken runs a script that gives a grant a token that was minted for it, and returns the token that the grant has.
func (n *node) giveToken(ctx context.Context, s wire.Script, key string, args ...any) (int64, error) {
	r, err := n.onKey(ctx, s, key, args...)
	if err == nil && r.Code == codeNotHeld {
		err = ErrLost
	}
	return r.Int(0), err
}

func (s *single) releaseMigrating(ctx context.Context, c claim) (int, error) {
	return s.node.releaseOnce(ctx, c.tombstoneKey(), s.tombstoneTTLOf(c), plainRecord(), func() (int, error) {
		return decodeRelease(s.node.Do(ctx, wire.Call{
			Script: s.scripts.release,
			Keys:   []string{c.key},
			Args:   []any{"h:" + c.id, s.tombstoneTTLOf(c), c.owner, flags(false, c.publish), c.freeChannel()},
		}))
	})
}

// onKey runs a script that names one key. Its writes are to reach replicas, if the client asks for that.
func (n *node) onKey(ctx context.Context, s wire.Script, key string, args ...any) (wire.Reply, error) {
	value, err := n.DoSafe(ctx, wire.Call{Script: s, Keys: []string{key}, Args: args})
	if err != nil {
		return wire.Reply{}, err
	}
	return decode(value, 0)
}

// refuseReleased fails if a hold has a tombstone. The script that acquires looks for it once more.
func (n *node) refuseReleased(ctx context.Context, tombstone string) error {
	count, err := n.Do(ctx, wire.Call{Command: []any{"exists", tombstone}})
	if count == int64(1) {
		return codeError(wire.Reply{Code: codeReleased})
	}
	return err
}

// afterGrant is the error of a request that follows a grant or an entry in a queue: the acquire may be sent again, or
// has to be undone.
func afterGrant(err error) error {
	if err == nil {
		return nil
	}
	return &requestError{wire.Unknown, err}
}

// notify sends a message to the waiters of a channel: while a slot migrates they are subscribed at its old master,
// which a script at the new one does not reach. Without it they poll.
func (n *node) notify(ctx context.Context, channel, message string) {
	if _, err := n.Do(ctx, wire.Call{Command: []any{"spublish", channel, message}}); err != nil {
		_, _ = n.Do(ctx, wire.Call{Command: []any{"publish", channel, message}})
	}
}

// recordFormat is the form in which a tombstone keeps the remainder of a release.
type recordFormat struct {
	text func(left int) string
	left func(text string) int
}

// plainRecord keeps the remainder as a number.
func plainRecord() recordFormat {
	return recordFormat{
		text: strconv.Itoa,
		left: func(text string) int {
			left, _ := strconv.Atoi(text)
			return left
		},
	}
}

// releaseOnce runs release, unless an earlier request has: its tombstone says so, and how it ended. release must find
// nothing when it is run again.
func (n *node) releaseOnce(ctx context.Context, tombstone string, ttl int64, format recordFormat,
	release func() (int, error)) (int, error) {
	before, err := n.record(ctx, tombstone, ttl, strconv.Itoa(codeUnsure))
	begun := before == strconv.Itoa(codeUnsure)
	if err != nil {
		return 0, err
	}
	if before != "" && !begun {
		return format.left(before), nil
	}
	left, err := release()
	if err == nil && left < 0 && begun {
		err = errUnsure
	}
	if err != nil {
		return 0, err
	}
	_, _ = n.record(ctx, tombstone, ttl, format.text(left)) // without it, a later request gets errUnsure
	return left, nil
}

// record leaves a tombstone, and returns the former one; empty: there was none.
func (n *node) record(ctx context.Context, tombstone string, ttl int64, text string) (string, error) {
	r, err := n.Ask(ctx, wire.Call{Script: recordScript, Keys: []string{tombstone}, Args: []any{ttl, text}}, 0)
	return r.Text(0), err
}

// counting is how the reply to a request of [doCounted] came.
type counting struct {
	migrating bool // the slot migrates
	repeated  bool // an earlier request with the same tombstone got this reply
}

// doCounted sends c, whose keys are a hash that counts and a tombstone. While their slot migrates, they may be on two
// masters: then a separate request reads the tombstone, which becomes the last argument of a request that names only
// the hash, where its reply is kept (tombstone.lua). Requests about other keys are sent unchanged.
func doCounted(ctx context.Context, send func(context.Context, wire.Call) (any, error), c wire.Call) (
	any, counting, error) {
	value, err := send(ctx, c)
	if !isMigrating(err) || !c.Counted {
		return value, counting{}, err
	}
	before, err := send(ctx, wire.Call{Command: []any{"get", c.Keys[1]}})
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
	c.Keys, c.Args = c.Keys[:1], append(slices.Clone(c.Args), c.Keys[1])
	value, err = send(ctx, c)
	return value, counting{migrating: true}, err
}
