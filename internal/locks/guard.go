package locks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
)

// fences are the fences of package lock that guard a resource in this process, by key.
type fences struct {
	mu sync.Mutex
	of map[string]*fence
}

// fence is one of them, and the greatest token that was presented to it.
type fence struct {
	lock.Fence
	greatest int64
}

// present presents a token, and compares the answer with the tokens presented before.
func (f *fences) present(key string, token int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = make(map[string]*fence)
	}
	if f.of[key] == nil {
		f.of[key] = new(fence)
	}
	one, used := f.of[key], false
	err := one.Do(token, func() error { used = true; return errScopeEnd })
	stale, returned := errors.Is(err, lock.ErrStale), errors.Is(err, errScopeEnd)
	if stale != (token < one.greatest) || used == stale || returned == stale {
		return contradiction("token %d was presented after %d: used %v, %v", token, one.greatest, used, err)
	}
	one.greatest = max(one.greatest, token)
	return nil
}

// guardKey is the key in which a guard of package lock keeps the greatest token.
func guardKey(key string) string { return native.BesideKey(key, "guard") }

// fencedKeys are the keys of a lock with fencing tokens that have no TTL or a long one.
func fencedKeys(key string) []string { return append([]string{guardKey(key)}, tokenKey(key)...) }

// countRuns returns its first key, its arguments, and how often it was run with its second key.
const countRuns = `local runs = redis.call('INCR', KEYS[2])
redis.call('PEXPIRE', KEYS[2], 5000)
return {KEYS[1], ARGV[1], ARGV[2], runs}`

// present presents a token to a resource of this process, whose answer is certain, and to one at the servers. Both
// return the result of the guarded operation.
func (l *library) present(ctx context.Context, key string, token uint64) error {
	if token == 0 || token > math.MaxInt64 {
		return fmt.Errorf("token %d is not one of this lock", token)
	}
	if err := l.fences.present(key, int64(token)); err != nil {
		return err
	}
	runs := fmt.Sprintf("%s:run:%x-%d", guardKey(key), l.seed, l.guarded.Add(1))
	guard := lock.NewRedisFence(l.conns[0], guardKey(key))
	got, err := guard.Run(ctx, int64(token), countRuns, []string{key, runs}, "a", token)
	switch want := fmt.Sprint([]any{key, "a", token, 1}); {
	case errors.Is(err, lock.ErrStale):
		return fmt.Errorf("%w: %w", client.ErrStale, err)
	case err == nil && fmt.Sprint(got) != want:
		return contradiction("the script of a guarded resource returned %v in place of %v", got, want)
	}
	return err
}
