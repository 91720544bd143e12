package locks

import (
	"context"

	"github.com/lockchaos/lockchaos/client"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/lock"
)

// sessionMutex is what a client of packages lock/zookeeper and lock/etcd acquires.
type sessionMutex[H sessionHold] interface {
	Acquire(ctx context.Context, owner string) (H, error)
	TryAcquire(ctx context.Context, owner string) (H, error)
}

// sessionBackend is one of these packages, with clients C.
type sessionBackend[C sessionClient, H sessionHold] struct {
	topology string
	length   string // the option with the length of a session
	undone   func(err error) bool
	// open prepares l for the connections of s. Its clients call lost and renewed.
	open func(l *sessionLocker[C, H], s client.Setup, lost, renewed func(H)) error
}

// row is the row of a kind of lock; of finds the one that a request is about.
func (b sessionBackend[C, H]) row(
	name, doc, source string, can client.Capabilities, of func(c C, a client.Acquire) sessionMutex[H],
) client.Spec {
	return client.Spec{
		Name: name, Doc: doc, Source: source, Topologies: []string{b.topology},
		Can: client.Capabilities{client.CanTry, client.RenewsItself, client.ReportsLoss, client.Wakes, client.Fair}.With(can...),
		Open: func(s client.Setup, notify func(client.Reply)) (client.Locker, error) {
			l := &sessionLocker[C, H]{notify: notify, tokens: can.Has(client.Fenced), mutex: of}
			if err := b.open(l, s, l.report(history.Lost), l.report(history.Renewed)); err != nil {
				return nil, err
			}
			return l, l.prepare(s.Options[b.length] != "")
		},
		CheckOptions: checkSession(b.length),
		Definite:     lock.Definite, Undone: b.undone, Code: lockCode,
	}
}

// sideFor is the side of a readers-writer lock that a request is for; without a mode, to write.
func sideFor[M any](l interface {
	Read() M
	Write() M
}, a client.Acquire,
) M {
	if a.Mode == "read" {
		return l.Read()
	}
	return l.Write()
}

// sessionNames are the names of the locks for all keys of a request; for one key, of two locks.
func sessionNames(a client.Acquire) (first string, more []string) {
	names := a.Keys
	if len(names) == 0 {
		two := multiKeys(a.Key)
		names = two[:2]
	}
	return names[0], names[1:]
}

// sessionPermits are some permits of a semaphore.
type sessionPermits[H sessionHold] struct {
	semaphore interface {
		Acquire(ctx context.Context, owner string, n int) (H, error)
		TryAcquire(ctx context.Context, owner string, n int) (H, error)
	}
	n int
}

// Acquire waits for the permits.
func (p sessionPermits[H]) Acquire(ctx context.Context, owner string) (H, error) {
	return p.semaphore.Acquire(ctx, owner, p.n)
}

// TryAcquire takes the permits if they are free.
func (p sessionPermits[H]) TryAcquire(ctx context.Context, owner string) (H, error) {
	return p.semaphore.TryAcquire(ctx, owner, p.n)
}
