package lock

import (
	"context"
	_ "embed" // the script is part of the program
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

//go:embed script/fence.lua
var fenceSource string

// ErrStale says that a guarded resource has seen a newer token: whoever came
// with this one had lost the lock without knowing it.
var ErrStale = errors.New("the fencing token is older than one that was seen")

// Fence guards a resource in this process: whoever uses it shows the token of
// his hold first. It is the only thing that helps against a holder who sleeps
// past the end of his lease (Kleppmann 2016). It stands beside the resource, not
// beside the lock, and what it admits must be done before it admits the next:
// use Do. The zero value is ready. Several goroutines may use it.
type Fence struct {
	mu   sync.Mutex
	last uint64
}

// Do calls f, alone, unless a greater token was here before: then the error is
// [ErrStale]. A token of 0 is refused: such a lock mints none.
func (f *Fence) Do(token uint64, use func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case token == 0:
		return errors.New("use a guarded resource: there is no token: take a lock that mints them")
	case token < f.last:
		return fmt.Errorf("use a guarded resource: %w: %d after %d", ErrStale, token, f.last)
	}
	f.last = token
	return use()
}

// RedisFence guards a resource that is in Redis itself: the check and the use
// are one script. Several goroutines may use it.
type RedisFence struct {
	rdb redis.Scripter
	key string
}

// NewRedisFence makes a guard that keeps the greatest token in key, which must be
// kept as long as the resource, and in a cluster in its slot.
func NewRedisFence(rdb redis.Scripter, key string) *RedisFence {
	return &RedisFence{rdb: rdb, key: key}
}

// Run runs source, a Lua script of the resource with its keys and args, unless a
// greater token was here before: then the error is [ErrStale]. An empty source
// only shows the token.
func (f *RedisFence) Run(ctx context.Context, token uint64, source string, keys []string, args ...any) (any, error) {
	if token == 0 {
		return nil, errors.New("use a guarded resource: there is no token: take a lock that mints them")
	}
	keys = append(append([]string(nil), keys...), f.key)
	args = append(append([]any(nil), args...), strconv.FormatUint(token, 10))
	value, err := redis.NewScript(fenceSource+source).Run(ctx, f.rdb, keys, args...).Result()
	switch {
	case err == nil || errors.Is(err, redis.Nil):
		return value, nil
	case redis.HasErrorPrefix(err, "STALE"):
		return nil, fmt.Errorf("use a guarded resource: %w: %w", ErrStale, err)
	}
	return nil, fmt.Errorf("use a guarded resource: %w", err)
}
