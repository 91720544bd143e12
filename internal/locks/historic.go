package locks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/historic"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/topology"
)

// historicSpecs are the locks of package historic as rows of this catalog.
func historicSpecs() []client.Spec {
	var rows []client.Spec
	for _, row := range historic.Catalog() {
		kinds := []string{topology.Single, topology.Replicated, topology.Sentinel}
		if row.Quorum {
			kinds = []string{topology.Quorum}
		}
		rows = append(rows, client.Spec{
			Name: row.Name, Doc: row.Flaw, Source: row.Source, Topologies: kinds, Can: historicCan(row),
			Open:         func(s client.Setup, _ func(client.Reply)) (client.Locker, error) { return openHistoric(row, s) },
			CheckOptions: func(options map[string]string) error { return checkHistoric(row, options) },
			Definite:     historicDefinite,
			Code:         historicCode,
		})
	}
	return rows
}

// historicCan are the promises of a lock of package historic: it polls, has no fencing and reports no loss.
func historicCan(row historic.Row) promise.Set {
	if row.Reentrant {
		return promise.Try | promise.Reentrant
	}
	return promise.Try
}

// resends is go-redis' default of MaxRetries, for locks whose flaw is that commands are sent again.
const resends = 3

// firstMaster is the option with the number, from 1, of the master that a client asks first.
const firstMaster = "first_master"

func checkHistoric(row historic.Row, options map[string]string) error {
	known := []string{native.OptionSkew}
	if row.Ordered {
		known = append(known, firstMaster)
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown option %q; this lock has %s", name, strings.Join(known, ", "))
		}
	}
	if _, err := firstOf(options); err != nil {
		return err
	}
	_, err := native.ClockOf(options, 0)
	return err
}

// firstOf is the index of the master that a client asks first.
func firstOf(options map[string]string) (int, error) {
	text := options[firstMaster]
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("option %s is the number of a master, from 1, not %q", firstMaster, text)
	}
	return n - 1, nil
}

func openHistoric(row historic.Row, s client.Setup) (client.Locker, error) {
	if err := checkHistoric(row, s.Options); err != nil {
		return nil, err
	}
	first, err := firstOf(s.Options)
	if err != nil {
		return nil, err
	}
	if n := len(s.Endpoints.Addrs); row.Ordered && n > 0 && first >= n {
		return nil, fmt.Errorf("option %s is %d, but there are only %d masters", firstMaster, first+1, n)
	}
	now, err := native.ClockOf(s.Options, s.Seed)
	if err != nil {
		return nil, err
	}
	retries := -1
	if row.Retries {
		retries = resends
	}
	conns, err := connectRetrying(s, retries, 0)
	if err != nil {
		return nil, err
	}
	l, err := row.Open(historic.Config{Masters: conns, Now: now, Rand: rand.NewPCG(s.Seed, 3), First: first})
	if err != nil {
		return nil, errors.Join(err, closeAll(conns))
	}
	return &historicLocker{row: row, lock: l, conns: conns}, nil
}

// historicLocker is a [Locker] on a lock of package historic.
type historicLocker struct {
	row   historic.Row
	lock  historic.Lock
	conns []redis.UniversalClient
}

// Acquire acquires the lock. The validity is the time on which users of these locks rely: the lease, counted from the
// request, or from the reply where the lock's last step sets the lease again.
func (l *historicLocker) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	requested := time.Now()
	var err error
	if a.Wait > 0 {
		requested, err = historic.Acquire(ctx, l.lock, a.Key, a.Owner, a.Lease)
	} else {
		err = l.lock.TryAcquire(ctx, a.Key, a.Owner, a.Lease)
	}
	if err != nil {
		return client.Grant{}, err
	}
	return client.Grant{Deadline: l.deadline(requested, a.Lease)}, nil
}

func (l *historicLocker) deadline(requested time.Time, lease time.Duration) time.Time {
	switch {
	case l.row.NoLease, lease == 0:
		return time.Time{}
	case l.row.LeaseFromReply:
		return time.Now().Add(lease)
	}
	return requested.Add(lease)
}

// Renew fails: none of these locks has a renewal for its users.
func (l *historicLocker) Renew(context.Context, client.Hold, time.Duration) (client.Grant, error) {
	return client.Grant{}, client.ErrNotHeld
}

// Release releases the lock.
func (l *historicLocker) Release(ctx context.Context, h client.Hold) (int, error) {
	return 0, l.lock.Release(ctx, h.Key, h.Owner)
}

// Close closes every connection; holds are left as they are.
func (l *historicLocker) Close(context.Context) error {
	l.lock.Close()
	return closeAll(l.conns)
}

// historicDefinite accepts the two errors that are replies of these locks, and a failed dial,
// which has sent nothing.
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
	return native.Code(err)
}
