package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/historic"
)

// historicSpecs are the locks of the articles: rows of this catalogue made from
// those of package historic.
func historicSpecs() []Spec {
	var rows []Spec
	for _, row := range historic.Catalog() {
		kinds := []string{Single, Replicated, Sentinel}
		if row.Many {
			kinds = []string{Quorum}
		}
		rows = append(rows, Spec{
			Name: row.Name, Doc: row.Flaw, Source: row.Source, Topologies: kinds, Reentrant: row.Reentrant,
			Open:     func(s Setup, _ func(Reply)) (Locker, error) { return openHistoric(row, s) },
			Definite: historicDefinite,
			Code:     historicCode,
		})
	}
	return rows
}

// clockSkew is the option that sets the clocks of clients apart: each is off by
// a time drawn from its seed, at most so much, either way. Locks that believe
// the clocks of clients are broken by it; the others do not notice.
const clockSkew = "clock_skew"

// resend is go-redis' own default, for locks whose flaw is to be sent again.
const resends = 3

func openHistoric(row historic.Row, s Setup) (Locker, error) {
	now := time.Now
	if text := s.Options[clockSkew]; text != "" {
		most, err := time.ParseDuration(text)
		if err != nil || most <= 0 {
			return nil, fmt.Errorf("option %s: %q is not a positive duration such as 5s", clockSkew, text)
		}
		off := time.Duration(rand.New(rand.NewPCG(s.Seed, 2)).Int64N(2*int64(most))) - most
		now = func() time.Time { return time.Now().Add(off) }
	}
	retries := -1
	if row.Retries {
		retries = resends
	}
	conns, err := connectRetrying(s, retries)
	if err != nil {
		return nil, err
	}
	l, err := row.Open(historic.Config{Masters: conns, Now: now, Rand: rand.NewPCG(s.Seed, 3)})
	if err != nil {
		return nil, errors.Join(err, closeAll(conns))
	}
	return &historicLocker{row: row, lock: l, conns: conns}, nil
}

// article is a lock of package historic behind the harness's words.
type historicLocker struct {
	row   historic.Row
	lock  historic.Lock
	conns []redis.UniversalClient
}

// Acquire takes the lock. What these locks promise is what their users believe:
// the lease, from the moment at which they asked, or from the answer on where
// the lock sets the lease anew at the end.
func (l *historicLocker) Acquire(ctx context.Context, a Ask) (Grant, error) {
	asked := time.Now()
	var err error
	if a.Wait {
		asked, err = historic.Acquire(ctx, l.lock, a.Key, a.Owner, a.Lease)
	} else {
		err = l.lock.TryAcquire(ctx, a.Key, a.Owner, a.Lease)
	}
	if err != nil {
		return Grant{}, err
	}
	return Grant{Deadline: l.promise(asked, a.Lease)}, nil
}

func (l *historicLocker) promise(asked time.Time, lease time.Duration) time.Time {
	switch {
	case l.row.Endless, lease == 0:
		return time.Time{}
	case l.row.Late:
		return time.Now().Add(lease)
	}
	return asked.Add(lease)
}

// Renew says that the hold is not there: none of these locks can be renewed by hand.
func (l *historicLocker) Renew(context.Context, string, string) (Grant, error) {
	return Grant{}, ErrNotHeld
}

// Release gives the lock back.
func (l *historicLocker) Release(ctx context.Context, key, owner string) (int, error) {
	return 0, l.lock.Release(ctx, key, owner)
}

// Close gives up every connection; what is held is left as it is.
func (l *historicLocker) Close(context.Context) error {
	l.lock.Close()
	return closeAll(l.conns)
}

// historicDefinite: these locks know two answers. Besides, a connection that
// was never made has carried nothing.
func historicDefinite(err error) bool {
	var dial *net.OpError
	return errors.Is(err, historic.ErrHeld) || errors.Is(err, historic.ErrNotOwner) ||
		errors.As(err, &dial) && dial.Op == "dial"
}

func historicCode(err error) string {
	switch {
	case errors.Is(err, historic.ErrHeld):
		return "held"
	case errors.Is(err, historic.ErrNotOwner):
		return "not-owner"
	}
	return lockCode(err)
}
