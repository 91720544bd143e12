package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// ErrStale says that a guarded resource has seen a newer token: the holder that uses
// this one has lost the lock without noticing.
var ErrStale = errors.New("the fencing token is older than one that was seen")

var errNoToken = errors.New("use a guarded resource: no token: take it from a FencedHold")

// Fence guards a resource in this process: each use presents the token of a hold. It is the only protection against a
// holder that is paused past the end of its lease (Kleppmann 2016). It belongs to the resource, not to the lock, and
// one use must end before the next is admitted; Do ensures that. The zero value is ready. Several goroutines may use
// it.
type Fence struct {
	mu   sync.Mutex
	last int64
}

// Do calls use, which no other use overlaps, unless the fence has seen a greater token:
// then the error is [ErrStale]. A token that is not positive is refused: no lock mints it.
func (f *Fence) Do(token int64, use func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case token <= 0:
		return errNoToken
	case token < f.last:
		return fmt.Errorf("use a guarded resource: %w: %d after %d", ErrStale, token, f.last)
	}
	f.last = token
	return use()
}

// RedisFence guards a resource that is in Redis: the check and the use are one script. Several goroutines may use it.
type RedisFence struct {
	rdb redis.UniversalClient
	key string
}

// NewRedisFence makes a guard that keeps the greatest token in key, which must exist as
// long as the resource, and in a cluster be in its slot.
func NewRedisFence(rdb redis.UniversalClient, key string) *RedisFence {
	return &RedisFence{rdb: rdb, key: key}
}

// Run runs source, a Lua script of the resource with its keys and args, unless the guard has seen a greater token: then
// the error is [ErrStale]. An empty source only presents the token. The script runs once at most: rdb's own MaxRetries
// does not apply, and the error is [ErrUnknown] if no reply came.
func (f *RedisFence) Run(ctx context.Context, token int64, source string, keys []string, args ...any) (any, error) {
	if token <= 0 {
		return nil, errNoToken
	}
	keys = slices.Concat(keys, []string{f.key})
	args = slices.Concat(args, []any{strconv.FormatInt(token, 10)})
	a := wire.SendOne(ctx, f.rdb, &wire.Call{Script: newScript("\n" + lua("fence") + source), Keys: keys, Args: args})
	switch {
	case a.Err == nil || errors.Is(a.Err, redis.Nil):
		return a.Value, nil
	case redis.HasErrorPrefix(a.Err, "STALE"):
		return nil, fmt.Errorf("use a guarded resource: %w: %w", ErrStale, a.Err)
	case wire.Classify(a.Err).Outcome == wire.Unknown:
		return nil, fmt.Errorf("use a guarded resource: %w: %w", ErrUnknown, a.Err)
	}
	return nil, fmt.Errorf("use a guarded resource: %w", a.Err)
}
