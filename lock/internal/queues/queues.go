// Package queues computes which requests in the queue of a lock are granted, for packages lock/etcd and lock/zookeeper.
// Each request has an entry, whose name is ID-WORD or ID-WORD-SUFFIX: its id, the word of its kind, and the server's
// suffix.
package queues

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/lock"
)

// Words in the names of entries.
const (
	lockWord = "lock"
	readWord = "read"
)

// Kind is the condition for which a request waits.
type Kind struct {
	Word string // in the names of its entries
	// Turn reports whether it is the turn of entry own, and otherwise for which entry to wait. The names are in order. If
	// Last, the names between the last one before own and own are enough.
	Turn func(own string, names []string) Turn
	Last bool
}

// Turn is the place of an entry in its queue.
type Turn struct {
	Found bool
	Now   bool   // it has the lock
	After string // the entry to wait for
	Any   bool   // the removal of any entry may be enough, because After has the lock, too
	// Announce says that the entry behind it must be woken.
	Announce bool
}

// Exclusive is a request that waits for every earlier one.
func Exclusive() Kind {
	return Kind{Word: lockWord, Last: true, Turn: func(own string, names []string) Turn {
		return behind(own, names, func(string) bool { return true })
	}}
}

// Shared is a request that waits for earlier ones that are not shared.
func Shared() Kind {
	return Kind{Word: readWord, Turn: func(own string, names []string) Turn {
		return behind(own, names, func(name string) bool { return wordOf(name) != readWord })
	}}
}

// behind is the turn of an entry that waits for the last before it that counts.
func behind(own string, names []string, counts func(name string) bool) (t Turn) {
	for _, name := range names {
		if name == own {
			t.Found, t.Now = true, t.After == ""
			return t
		}
		if counts(name) {
			t.After = name
		}
	}
	return Turn{}
}

// Permits is a request for n of total. It is served when it fits beside all earlier ones, so the first ones are always
// served first: small requests do not overtake large ones.
func Permits(n, total int) Kind {
	return Kind{Word: fmt.Sprintf("%dof%d", n, total), Turn: func(own string, names []string) Turn {
		sum := 0
		for i, name := range names {
			room := sum <= total
			sum += weightOf(name, total)
			if name != own {
				continue
			}
			t := Turn{Found: true, Now: sum <= total, Any: room}
			t.Announce = t.Now && i < len(names)-1 && (i > 0 || sum < total)
			if i > 0 {
				t.After = names[i-1]
			}
			return t
		}
		return Turn{}
	}}
}

// Place is an entry in the queue of a lock at the servers.
type Place interface {
	// Turn reads the queue. A turn that is not Found says that the entry was removed by somebody else.
	Turn(ctx context.Context) (Turn, error)
	// Changed waits until the turn that was read last may be another one.
	Changed(ctx context.Context, t Turn) error
	// Announce wakes the entry behind this one, without waiting for that.
	Announce()
}

// Await waits until it is the turn of an entry. Its error is [lock.ErrLost] if the entry was removed, an error of the
// servers, or [lock.ErrHeld] if it was not the entry's turn before ctx has ended, or now where wait is false.
func Await(ctx context.Context, p Place, wait bool) error {
	for held := false; ; {
		t, err := p.Turn(ctx)
		switch {
		case err != nil:
		case !t.Found:
			return ErrRemoved()
		case t.Now:
			if t.Announce {
				p.Announce()
			}
			return nil
		case !wait:
			return lock.ErrHeld
		default:
			held = true
			err = p.Changed(ctx, t)
		}
		switch {
		case err != nil && held && ctx.Err() != nil:
			return fmt.Errorf("%w: %w", lock.ErrHeld, ctx.Err())
		case err != nil:
			return err
		}
	}
}

// ErrRemoved says that somebody has deleted the entry of an acquire, or that its session has ended.
func ErrRemoved() error { return fmt.Errorf("%w: its entry was removed while it waited", lock.ErrLost) }

// Names are the names of several locks, each once.
func Names(first string, more []string) []string {
	names := []string{first}
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Event is an event of a request for a lock, or for permits if there are any, without its kind.
func Event(name, owner string, permits int) lock.Event {
	e := lock.Event{Primitive: "lock", Name: name, Owner: owner, Permits: permits}
	if permits > 0 {
		e.Primitive = "permits"
	}
	return e
}

// CheckPermits refuses a number of permits that is never free.
func CheckPermits(n, total int) error {
	if n < 1 || n > total {
		return fmt.Errorf("%w: %d of %d permits", lock.ErrPermits, n, total)
	}
	return nil
}

// wordOf is the second part of a name; empty in a name of others, which counts as a request for the whole lock.
func wordOf(name string) string {
	_, rest, _ := strings.Cut(name, "-")
	word, _, _ := strings.Cut(rest, "-")
	return word
}

// IsEntry reports whether an entry of any kind has this name.
func IsEntry(name string) bool {
	word := wordOf(name)
	n, total, _ := strings.Cut(word, "of")
	_, bad := strconv.Atoi(n)
	_, worse := strconv.Atoi(total)
	return word == lockWord || word == readWord || bad == nil && worse == nil
}

// weightOf is the number of permits that an entry requests; an entry for no permits counts as all.
func weightOf(name string, total int) int {
	n, _, _ := strings.Cut(wordOf(name), "of")
	if v, err := strconv.Atoi(n); err == nil && v > 0 && v <= total {
		return v
	}
	return total
}
