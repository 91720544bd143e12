package lock

import "context"

// FencedMutex is a [Mutex] whose holds have fencing tokens, for a resource that refuses a token older than one it has
// seen ([Fence], [RedisFence], or a condition in SQL). A plain mutex of the same name excludes it and has no tokens,
// so all users of the lock should use the fenced one. On a client of several masters its methods return
// [ErrOneMaster]: counters on several masters drift apart (Kleppmann 2016). Several goroutines may use it.
type FencedMutex struct{ mutex Mutex }

// FencedMutex is the fenced lock of that name. It sends no request and needs no closing.
func (c *Client) FencedMutex(name string, opts ...Option) *FencedMutex {
	return &FencedMutex{Mutex{named: c.named(name, opts), fenced: true}}
}

// Name is the name that it was made with.
func (m *FencedMutex) Name() string { return m.mutex.name }

// Acquire is like [Mutex.Acquire].
func (m *FencedMutex) Acquire(ctx context.Context, opts ...Option) (*FencedHold, error) {
	return m.mutex.acquire(ctx, opts)
}

// TryAcquire is like [Mutex.TryAcquire].
func (m *FencedMutex) TryAcquire(ctx context.Context, opts ...Option) (*FencedHold, error) {
	return m.mutex.tryAcquire(ctx, opts)
}

// Do is like [Mutex.Do]; work gets the token of the hold.
func (m *FencedMutex) Do(ctx context.Context, work func(ctx context.Context, token int64) error,
	opts ...Option) error {
	return doFenced(ctx, m, work, opts)
}

// fencedLock acquires a lock of any kind, of a plain mutex with a token of 0.
type fencedLock interface {
	Acquire(ctx context.Context, opts ...Option) (*FencedHold, error)
	TryAcquire(ctx context.Context, opts ...Option) (*FencedHold, error)
}

// doFenced calls work under a hold of l, with its token.
func doFenced(ctx context.Context, l fencedLock, work func(ctx context.Context, token int64) error,
	opts []Option) error {
	h, err := l.Acquire(ctx, opts...)
	if err != nil {
		return err
	}
	return do(ctx, h, func(ctx context.Context) error { return work(ctx, h.Token()) })
}

// Inspect is like [Mutex.Inspect].
func (m *FencedMutex) Inspect(ctx context.Context) (State, error) { return m.mutex.Inspect(ctx) }

// ForceRelease is like [Mutex.ForceRelease].
func (m *FencedMutex) ForceRelease(ctx context.Context) (bool, error) {
	return m.mutex.ForceRelease(ctx)
}
