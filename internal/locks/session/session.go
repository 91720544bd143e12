// Package session describes the locks in SQL databases, and describes and drives the locks of packages lock/zookeeper
// and lock/etcd, whose holds end with the session of their client. Read [Backend] first.
package session

import (
	"context"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/promise"
)

// Mutex is a lock of package lock/zookeeper or lock/etcd.
type Mutex[H Hold] interface {
	Acquire(ctx context.Context, owner string) (H, error)
	TryAcquire(ctx context.Context, owner string) (H, error)
}

// Kind is the kind of all locks whose holds end with a session of one sort.
type Kind struct {
	Topology string
	Length   string // the option of a scenario with the length of a session
}

// Row is a lock of that kind that cannot be opened yet.
func (k Kind) Row(name, doc, source string, can promise.Set) client.Spec {
	return client.Spec{
		Name: name, Doc: doc, Source: source, Topologies: []string{k.Topology},
		Can: promise.Try | promise.Watchdog | promise.ReportsLoss | promise.Wakes | promise.Fair | promise.KeepsGrants |
			can,
		Options:      []client.Option{{Name: k.Length, Share: 80, Values: []string{"1s", "2s", "4s", "10s"}}},
		CheckOptions: checkSession(k.Length), Definite: lock.Definite, Code: native.Code,
	}
}

// Backend opens the locks of a kind with clients C of package lock/zookeeper or lock/etcd.
type Backend[C Client, H Hold] struct {
	Kind
	Undone func(err error) bool
	// Prepare prepares l for the connections of s. Its clients call lost and renewed.
	Prepare func(l *Locker[C, H], s client.Setup, lost, renewed func(H)) error
}

// Opens returns row with its Open set; of finds the lock that a request is about.
func (b Backend[C, H]) Opens(row client.Spec, of func(c C, a client.Acquire) Mutex[H]) client.Spec {
	row.Undone = b.Undone
	row.Open = func(s client.Setup, notify func(client.Reply)) (client.Locker, error) {
		l := &Locker[C, H]{notify: notify, tokens: row.Can.Has(promise.Fenced), mutex: of}
		if err := b.Prepare(l, s, l.report(history.Lost), l.report(history.Renewed)); err != nil {
			return nil, err
		}
		return l, l.prepare(s.Options[b.Length] != "")
	}
	return row
}

// Side is the side of a readers-writer lock that a request is for; without a mode, to write.
func Side[M any](l interface {
	Read() M
	Write() M
}, a client.Acquire,
) M {
	if a.Mode == "read" {
		return l.Read()
	}
	return l.Write()
}

// Names are the names of the locks for all keys of a request; for one key, of two locks.
func Names(a client.Acquire) (first string, more []string) {
	names := a.Keys
	if len(names) == 0 {
		two := native.MultiKeys(a.Key)
		names = two[:2]
	}
	return names[0], names[1:]
}

// Permits are some permits of a semaphore.
type Permits[H Hold] struct {
	Semaphore interface {
		Acquire(ctx context.Context, owner string, n int) (H, error)
		TryAcquire(ctx context.Context, owner string, n int) (H, error)
	}
	N int
}

// Acquire waits for the permits.
func (p Permits[H]) Acquire(ctx context.Context, owner string) (H, error) {
	return p.Semaphore.Acquire(ctx, owner, p.N)
}

// TryAcquire takes the permits if they are free.
func (p Permits[H]) TryAcquire(ctx context.Context, owner string) (H, error) {
	return p.Semaphore.TryAcquire(ctx, owner, p.N)
}
