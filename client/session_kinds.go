package client

import "context"

// sessionMutex is what a client of packages lock/zookeeper and lock/etcd acquires.
type sessionMutex[H sessionHold] interface {
	Acquire(ctx context.Context, owner string) (H, error)
	TryAcquire(ctx context.Context, owner string) (H, error)
}

func acquireSession[H sessionHold](ctx context.Context, m sessionMutex[H], a Acquire) (H, error) {
	if a.Wait == 0 {
		return m.TryAcquire(ctx, a.Owner)
	}
	return m.Acquire(ctx, a.Owner)
}

// acquireSessionMutex acquires the mutex of a client.
func acquireSessionMutex[H sessionHold, M sessionMutex[H], C interface{ Mutex(name string) M }](
	ctx context.Context, c C, a Acquire,
) (H, error) {
	return acquireSession(ctx, c.Mutex(a.Key), a)
}

// sessionRW is a readers-writer lock of such a client.
type sessionRW[M any] interface {
	Read() M
	Write() M
}

// acquireSessionRW acquires one side of a readers-writer lock of a client; without a mode, to write.
func acquireSessionRW[H sessionHold, M sessionMutex[H], R sessionRW[M], C interface{ RW(name string) R }](
	ctx context.Context, c C, a Acquire,
) (H, error) {
	if a.Mode == "read" {
		return acquireSession(ctx, c.RW(a.Key).Read(), a)
	}
	return acquireSession(ctx, c.RW(a.Key).Write(), a)
}

// sessionMulti is a client with locks of several names.
type sessionMulti[M any] interface {
	Multi(first string, more ...string) M
}

// acquireSessionMulti acquires the locks of all keys of a request; of one key, two locks.
func acquireSessionMulti[H sessionHold, M sessionMutex[H], C sessionMulti[M]](
	ctx context.Context, c C, a Acquire,
) (H, error) {
	names := a.Keys
	if len(names) == 0 {
		two := multiKeys(a.Key)
		names = two[:2]
	}
	return acquireSession(ctx, c.Multi(names[0], names[1:]...), a)
}

// sessionSemaphore is a semaphore of such a client.
type sessionSemaphore[H sessionHold] interface {
	Acquire(ctx context.Context, owner string, n int) (H, error)
	TryAcquire(ctx context.Context, owner string, n int) (H, error)
}

// sessionSemaphores is a client with semaphores.
type sessionSemaphores[S any] interface {
	Semaphore(name string, total int) S
}

// acquireSessionPermits acquires permits of a semaphore of a client.
func acquireSessionPermits[H sessionHold, S sessionSemaphore[H], C sessionSemaphores[S]](
	ctx context.Context, c C, a Acquire,
) (H, error) {
	s := c.Semaphore(a.Key, a.Limit)
	if a.Wait == 0 {
		return s.TryAcquire(ctx, a.Owner, a.Permits)
	}
	return s.Acquire(ctx, a.Owner, a.Permits)
}
