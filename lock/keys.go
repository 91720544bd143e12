package lock

import (
	"fmt"
	"strings"
)

// claim is one hold as the servers know it.
type claim struct {
	name         string // the lock, and its key
	owner        string
	id           string // of the hold
	lease        int64  // milliseconds
	waiterTTL    int64  // milliseconds that a waiter's place lasts without a heartbeat; 0: it takes none
	nonReentrant bool   // refuse an owner that holds the lock already
	fence        bool   // mint a fencing token, whatever the client's option says
	notify       string // whoever asks will wait, and wants to be told so; empty: he will not
	store        store  // the store of its kind of lock; nil: the client's own

	// For a release.
	releaseNotify string // say so that the lock is free, whether anybody has left a mark or not
	oldTombstone  string // a tombstone to remove with the lock; empty: none
}

// letters tells a script what is special about c.
func (c *claim) flags() string {
	if c.nonReentrant {
		return "s" + c.notify
	}
	return c.notify
}

func (c claim) tokenKey() string     { return tagged(c.name, "token") }
func (c claim) tombstoneKey() string { return tagged(c.name, "tombstone:", c.id) }
func (c claim) freeChannel() string {
	return tagged(c.name, "free")
}

// tagged is a key beside the lock's own that lives in the same cluster slot.
func tagged(name, suffix string, more ...string) string {
	end := ""
	if len(more) > 0 {
		end = more[0]
	}
	if strings.IndexByte(name, '{') >= 0 && hasTag(name) {
		return name + ":" + suffix + end
	}
	return "{" + name + "}:" + suffix + end
}

// hasTag reports whether Redis hashes only a part of name: what stands between
// the first brace and the next closing one, unless that is nothing (Redis
// cluster specification, "Hash tags").
func hasTag(name string) bool {
	open := strings.IndexByte(name, '{')
	if open < 0 {
		return false
	}
	return strings.IndexByte(name[open+1:], '}') > 0
}

// checkName refuses names beside which no key can be put into the same slot.
func checkName(name string) error {
	if name == "" {
		return fmt.Errorf("lock name is empty: give the lock a name")
	}
	if strings.IndexByte(name, '}') >= 0 && !hasTag(name) {
		return fmt.Errorf("lock name %q: braces that are not a hash tag; leave them out or write {tag}", name)
	}
	return nil
}
