package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/lock/internal/wait"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Layout is the format in which the servers keep the mutexes of a client; see [Options].
type Layout int

const (
	// OwnLayout is the layout of this package; see Keys.
	OwnLayout Layout = iota
	// Redisson is the layout of RLock and RFencedLock of Redisson, for a lock that programs in Go and Java share. The key
	// is a hash, in which a field that names the owner (a UUID, a colon, and the number of a thread) counts its holds. The
	// other keys and the channel have the names that Redisson gives them, for a lock named orders:
	//
	//	redisson_lock__channel:{orders}        the channel; 0 says that the lock is free
	//	redisson_unlock_latch:{orders}:<hold>  short-lived: the reply to the release of this hold
	//	redisson_lock_token:{orders}           the last fencing token
	//
	// A hold that is not the first of a new owner, because of [WithOwner] or [WithReentry], also has a field h:<hold>,
	// which Redisson ignores: a request that is sent again counts once. Tokens are Redisson's: a counter, which starts
	// again when the server loses it. [WithOwner] names the field itself, as uuid:thread to share the holds of a thread
	// in Java. A field h: has the fencing token of a grant while a slot of a cluster migrates, 0 if it has none yet.
	Redisson
)

// ErrLayout says that the layout of the client has no such lock, or that a client of several masters cannot have it.
var ErrLayout = errors.New("the layout of Redisson has only mutexes on one master, fenced or not: " +
	"make another client, with the layout of this package")

// check refuses an unknown layout.
func (l Layout) check() error {
	if l != OwnLayout && l != Redisson {
		return fmt.Errorf("layout %d is unknown: give OwnLayout or Redisson", l)
	}
	return nil
}

// ownKinds refuses the kinds of locks that need one master and the layout of this package.
func (c *Client) ownKinds() error {
	switch {
	case !c.single:
		return ErrOneMaster
	case c.o.Layout == Redisson:
		return ErrLayout
	}
	return nil
}

// checkRedissonOwner refuses an owner whose field would look like a hold's.
func checkRedissonOwner(owner string) error {
	if strings.HasPrefix(owner, "h:") {
		return fmt.Errorf("owner %q begins with h:, as the fields of holds: choose another name", owner)
	}
	return nil
}

// redissonKey is another key, or a channel, of Redisson for the lock at key.
func redissonKey(prefix, key string) string {
	if strings.IndexByte(key, '{') >= 0 {
		return prefix + ":" + key
	}
	return prefix + ":{" + key + "}"
}

// redissonStore keeps mutexes on one master as Redisson does.
type redissonStore struct {
	*single
	queues *wait.Queues
}

var _ store = (*redissonStore)(nil)

func (s *redissonStore) acquire(ctx context.Context, c claim) (grant, error) {
	keys := []string{c.key, c.tombstoneKey()}
	if c.fenced {
		keys = append(keys, c.tokenKey())
	}
	g, err := s.node.grant(ctx, wire.Call{
		Script: redissonScript.acquire,
		Keys:   keys,
		Args:   []any{c.id, c.lease, c.owner, flags(c.nonReentrant, wait.NotifyNone)},
	})
	if isMigrating(err) {
		return s.acquireMigrating(ctx, c)
	}
	return g, err
}

// acquireMigrating decides by the hash alone; see migrating.go.
func (s *redissonStore) acquireMigrating(ctx context.Context, c claim) (grant, error) {
	if err := s.node.refuseReleased(ctx, c.tombstoneKey()); err != nil {
		return grant{}, err
	}
	g, err := s.decide(ctx, c)
	if err != nil || !g.ok {
		g.ttl = pollUnsubscribed
		return g, err
	}
	switch {
	case !c.fenced:
	case g.token == unminted:
		g.token, err = s.mint(ctx, c)
	case g.token == 0:
		g.token, err = s.token(ctx, "get", c.tokenKey())
	}
	return g, afterGrant(err)
}

// unminted is the token in the reply to an acquire whose grant has no fencing token yet. A field of the hash (h:)
// records that, because the request that mints the token, at another key, may be executed as late as after the
// migration. Redisson ignores the field.
const unminted = -1

// mint gives the grant of c a fencing token. Meanwhile the lock is granted to no other owner, but may be to the same
// one.
func (s *redissonStore) mint(ctx context.Context, c claim) (int64, error) {
	token, err := s.token(ctx, "incr", c.tokenKey())
	if err != nil {
		return 0, err
	}
	return s.node.giveToken(ctx, redissonScript.token, c.key, token)
}

// decide acquires the lock by its hash alone. A grant that was decided so by an earlier request, and that has no
// fencing token yet, has the token [unminted].
func (s *redissonStore) decide(ctx context.Context, c claim) (grant, error) {
	words := flags(c.nonReentrant, wait.NotifyNone)
	if c.fenced {
		words += "f"
	}
	return s.node.grant(ctx, wire.Call{
		Script: redissonScript.acquire,
		Keys:   []string{c.key},
		Args:   []any{c.id, c.lease, c.owner, words, c.tombstoneKey()},
	})
}

// token is the value of a counter.
func (s *redissonStore) token(ctx context.Context, command, key string) (int64, error) {
	value, err := s.node.DoSafe(ctx, wire.Call{Command: []any{command, key}})
	if text, ok := value.(string); ok && err == nil {
		return strconv.ParseInt(text, 10, 64)
	}
	token, _ := value.(int64)
	return token, err
}

func (s *redissonStore) release(ctx context.Context, c claim) (int, error) {
	keys := []string{c.key, c.tombstoneKey()}
	for _, old := range c.oldTombstones {
		keys = append(keys, old.(string))
	}
	value, err := s.node.Do(ctx, wire.Call{
		Script: redissonScript.release,
		Keys:   keys,
		Args:   []any{c.id, s.tombstoneTTL, c.owner, flags(false, s.queues.NotifyMode()), c.freeChannel()},
	})
	if isMigrating(err) {
		return s.releaseMigrating(ctx, c)
	}
	return decodeRelease(value, err)
}

func (s *redissonStore) releaseMigrating(ctx context.Context, c claim) (int, error) {
	left, err := s.node.releaseOnce(ctx, c.tombstoneKey(), s.tombstoneTTL, plainRecord(), func() (int, error) {
		return decodeRelease(s.node.Do(ctx, wire.Call{
			Script: redissonScript.release,
			Keys:   []string{c.key},
			Args:   []any{c.id, s.tombstoneTTL, c.owner, flags(false, s.queues.NotifyMode()), c.freeChannel()},
		}))
	})
	if err == nil && left == 0 {
		s.node.notify(ctx, c.freeChannel(), "0")
	}
	return left, err
}
