// Package native is shared by the native clients of the catalog: connections, the identity of holds, common options,
// and the codes of errors.
package native

import (
	"context"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/client"
)

// HoldID identifies a hold by its key, owner and mode.
type HoldID struct{ Key, Owner, Mode string }

// IDOf is the identity of a hold; several keys are one.
func IDOf(h client.Hold) HoldID {
	return HoldID{strings.Join(KeysOf(h), "+"), h.Owner, h.Mode}
}

// KeysOf are the keys of a hold, at least one.
func KeysOf(h client.Hold) []string {
	if len(h.Keys) > 0 {
		return h.Keys
	}
	return []string{h.Key}
}

// MaxEnded is how many holds that have ended are remembered.
const MaxEnded = 64

// Releasable is a hold until a deadline.
type Releasable interface {
	Deadline() time.Time
	Release(ctx context.Context) error
	Lasting
}

// Lasting is a hold that ends without a release when it is lost.
type Lasting interface {
	Done() <-chan struct{}
	Err() error // why it has ended
}

// MultiKeys are the locks of a multi-lock for one key: one of its name, which samples show, and others in its slot.
func MultiKeys(key string) [4]string {
	return [...]string{key, BesideKey(key, "b"), BesideKey(key, "c"), BesideKey(key, "d")}
}

// BesideKey is the name of a key in the slot of a lock's, which may have a hash tag of its own.
func BesideKey(key, suffix string) string {
	if strings.Contains(key, "{") {
		return key + ":" + suffix
	}
	return "{" + key + "}:" + suffix
}
