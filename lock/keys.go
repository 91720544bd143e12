package lock

import (
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/lock/internal/owned"
	"github.com/lockchaos/lockchaos/lock/internal/wait"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// claim is one hold as the servers know it.
type claim struct {
	name  string // of the lock or semaphore, for its user
	key   string // see Options.KeyFunc
	owner string // empty: permits have none
	id    string // of the hold
	lease int64  // milliseconds
	store store  // of its kind

	layout Layout

	// For an acquire.
	waiterTTL    int64 // milliseconds that its waiter stays queued at the server without a heartbeat; 0: it does not queue
	permits      int
	nonReentrant bool            // refuse an owner that holds the lock
	fenced       bool            // mint a fencing token
	metadata     string          // kept with a lock that was free; empty: none
	plain        bool            // try SET first
	setOnly      bool            // no script after SET: it is left to the first waiter
	value        string          // of a plain lock: "h:" and the hold
	notify       wait.NotifyMode // leave a mark that the waiter is to be notified; notifyNone: it does not wait
	handed       *wait.Handed    // it was sent already; nil: it was not

	fresh bool // for a renewal: over a new connection

	// For a release.
	publish       wait.NotifyMode // publish even without a mark; notifyNone: do not
	words         *words          // it was granted by SET; nil: by a script
	tombstone     any             // its tombstoneKey, if it was made before
	oldTombstones []any           // tombstones to remove with the lock
	outlasts      bool            // the lease of a lock that SET acquired lasts as long as its tombstone has to
	late          bool            // a SET may still arrive
	handOver      *handingOver    // nil: it must not
}

// flags are the flags of a script, empty: none.
func flags(nonReentrant bool, mode wait.NotifyMode) string {
	var b [2]byte
	out := b[:0]
	if nonReentrant {
		out = append(out, 'n')
	}
	if mode != wait.NotifyNone {
		out = append(out, byte(mode))
	}
	return string(out)
}

// owned is the lock of the owner.
func (c *claim) owned() owned.Lock { return owned.Lock{Key: c.key, Owner: c.owner} }

func (c claim) tokenKey() string {
	if c.layout == Redisson {
		return redissonKey("redisson_lock_token", c.key)
	}
	return tagged(c.key, "token")
}

func (c claim) tombstoneKey() string {
	if c.layout == Redisson {
		return redissonKey("redisson_unlock_latch", c.key) + ":" + c.id
	}
	return tombstoneKey(c.key, c.id)
}

func (c claim) freeChannel() string {
	if c.layout == Redisson {
		return redissonKey("redisson_lock__channel", c.key)
	}
	return tagged(c.key, "free")
}

// field is the field of the hold in the hash of its lock.
func (c claim) field() string {
	if c.layout == Redisson && c.owner == c.id {
		return c.owner
	}
	return "h:" + c.id
}

// tombstoneKey is where the reply to a release, or to another request that must not count twice, is kept.
func tombstoneKey(key, id string) string { return tagged(key, "tombstone:", id) }

// tagged is a key beside the lock's own that is in the same cluster slot.
func tagged(key, suffix string, more ...string) string {
	end := ""
	if len(more) > 0 {
		end = more[0]
	}
	if strings.IndexByte(key, '{') >= 0 && wire.HasTag(key) {
		return key + ":" + suffix + end
	}
	return "{" + key + "}:" + suffix + end
}

// named has the common parts of all locks, semaphores and latches.
type named struct {
	client  *Client
	name    string
	key     string
	options *settings
}

func (c *Client) named(name string, opts []Option) named {
	key := name
	if c.o.KeyFunc != nil && name != "" {
		key = c.o.KeyFunc(name)
	}
	return named{c, name, key, c.plain.with(opts)}
}

// with is n with other settings.
func (n named) with(s *settings) named {
	n.options = s
	return n
}

// Name is the name that it was made with.
func (n named) Name() string { return n.name }

// checkName refuses names for which no key can be made in the same slot.
func checkName(name string) error {
	if name == "" {
		return fmt.Errorf("lock name is empty: give the lock a name")
	}
	if strings.IndexByte(name, '}') >= 0 && !wire.HasTag(name) {
		return fmt.Errorf("lock name %q: braces that are not a hash tag; leave them out or write {tag}", name)
	}
	return nil
}
