package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
)

// tableLock is a lock that a row with an owner is. Each statement has a reply with a row, the token (0: none), if it
// had an effect. Its parameters are @name, @owner, @ms (the lease) and @now (the client's clock).
type tableLock struct {
	acquire, renew, release string
	leased                  bool
}

// uniqueRow is the lock of a row that exists while it is held.
func uniqueRow() tableLock {
	return tableLock{
		acquire: `INSERT INTO locks (name, owner) VALUES (@name, @owner) ON CONFLICT DO NOTHING RETURNING 0::bigint`,
		release: `DELETE FROM locks WHERE name = @name AND owner = @owner RETURNING 0::bigint`,
	}
}

// The clocks by which a lease ends. That of the server advances within a statement, so that one which waited for
// another does not compare an old time.
const (
	serverNow = `clock_timestamp()`
	clientNow = `@now::timestamptz`
)

// leasedRow is the lock of a row whose lease ends by the clock now. The row stays, so that its token grows.
func leasedRow(now string) tableLock {
	by := func(statement string) string {
		statement = strings.ReplaceAll(statement, "UNTIL", "NOW + @ms::bigint * interval '1 millisecond'")
		return strings.ReplaceAll(statement, "NOW", now)
	}
	return tableLock{
		acquire: by(`INSERT INTO locks AS l VALUES (@name, @owner, 1, UNTIL)
			ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, token = l.token + 1, expires = EXCLUDED.expires
			WHERE l.owner IS NULL OR l.expires <= NOW RETURNING l.token`),
		renew: by(`UPDATE locks SET expires = UNTIL
			WHERE name = @name AND owner = @owner AND expires > NOW RETURNING token`),
		release: by(`UPDATE locks SET owner = NULL, expires = NULL
			WHERE name = @name AND owner = @owner AND expires > NOW RETURNING token`),
		leased: true,
	}
}

// defaultLease is the lease of a request without one.
const defaultLease = 30 * time.Second

// table is a [client.Locker] with one session, which it begins again after an error.
type table struct {
	tableLock
	config *pgx.ConnConfig
	now    func() time.Time // the client's clock

	mu     sync.Mutex // held for one statement at a time, and while a session begins
	conn   *pgx.Conn  // nil before the first request
	random *rand.Rand
	leases map[native.HoldID]time.Duration // of the holds that were granted and not released
}

func opensTable(l tableLock) openFunc {
	return func(s client.Setup, _ func(client.Reply)) (client.Locker, error) {
		config, err := configure(s)
		if err != nil {
			return nil, err
		}
		now, err := native.ClockOf(s.Options, s.Seed)
		return &table{
			tableLock: l, config: config, now: now, random: rand.New(rand.NewPCG(s.Seed, 3)),
			leases: map[native.HoldID]time.Duration{},
		}, err
	}
}

// errNoEffect is the error of a statement that changed nothing.
var errNoEffect = errors.New("no effect")

// run executes a statement about the row of a hold. It sends it again, in a new session, if the old one had ended
// before anything was sent.
func (l *table) run(ctx context.Context, statement string, h client.Hold, lease time.Duration) (client.Grant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, native.RequestTimeout)
	defer cancel()
	g, err := l.send(ctx, statement, h, lease)
	if pgconn.SafeToRetry(err) {
		g, err = l.send(ctx, statement, h, lease)
	}
	return g, err
}

// send executes a statement once. l.mu is held.
func (l *table) send(ctx context.Context, statement string, h client.Hold, lease time.Duration) (client.Grant, error) {
	if err := l.session(ctx); err != nil {
		return client.Grant{}, err
	}
	sent := time.Now()
	var token int64
	err := l.conn.QueryRow(ctx, statement, pgx.NamedArgs{
		"name": h.Key, "owner": h.Owner, "ms": lease.Milliseconds(), "now": l.now(),
	}).Scan(&token)
	if errors.Is(err, pgx.ErrNoRows) {
		return client.Grant{}, errNoEffect
	}
	g := client.Grant{Token: uint64(token)}
	if l.leased {
		g.Deadline = sent.Add(lease)
	}
	return g, err
}

// session begins a session if there is none, or if it does not answer, and tries again until ctx ends: the server
// may be starting. l.mu is held.
func (l *table) session(ctx context.Context) error {
	if err := ctx.Err(); err != nil { // it says nothing about the session
		return fmt.Errorf("%w: %w", native.ErrNoSession, err)
	}
	if l.conn != nil && !l.conn.IsClosed() {
		if l.conn.Ping(ctx) == nil {
			return nil
		}
		_ = end(l.conn)
	}
	for {
		c, err := connect(ctx, l.config, "")
		if err == nil {
			l.conn = c
			return nil
		}
		select {
		case <-time.After(longest):
		case <-ctx.Done():
			return err
		}
	}
}

// Pauses before another attempt.
const (
	shortest = 5 * time.Millisecond
	longest  = 50 * time.Millisecond
)

// Acquire tries until the lock is free, with random pauses.
func (l *table) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	lease := cmp.Or(a.Lease, defaultLease)
	for {
		g, err := l.run(context.WithoutCancel(ctx), l.acquire, a.Hold(), lease)
		if !errors.Is(err, errNoEffect) {
			if err == nil {
				l.remember(a.Hold(), lease)
			}
			return g, err
		}
		if a.Wait == 0 || !l.pause(ctx) {
			return g, lock.ErrHeld
		}
	}
}

// pause waits from 5 to 50 ms and reports whether ctx has not ended.
func (l *table) pause(ctx context.Context) bool {
	l.mu.Lock()
	t := time.NewTimer(shortest + time.Duration(l.random.Int64N(int64(longest-shortest))))
	l.mu.Unlock()
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// remember keeps the lease of a hold.
func (l *table) remember(h client.Hold, lease time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases[native.IDOf(h)] = lease
}

// forget forgets the lease of a hold that has ended.
func (l *table) forget(h client.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leases, native.IDOf(h))
}

// leaseOf is the lease of a hold; 0: it is not known.
func (l *table) leaseOf(h client.Hold) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases[native.IDOf(h)]
}

// Renew extends the lease.
func (l *table) Renew(ctx context.Context, h client.Hold, lease time.Duration) (client.Grant, error) {
	lease = cmp.Or(lease, l.leaseOf(h))
	if lease == 0 || l.renew == "" {
		return client.Grant{}, client.ErrNotHeld
	}
	g, err := l.run(ctx, l.renew, h, lease)
	if errors.Is(err, errNoEffect) {
		return g, client.ErrNotHeld
	}
	return g, err
}

// Release releases the lock.
func (l *table) Release(ctx context.Context, h client.Hold) (int, error) {
	_, err := l.run(ctx, l.release, h, 0)
	if errors.Is(err, errNoEffect) {
		err = client.ErrNotHeld
	}
	if err == nil || errors.Is(err, client.ErrNotHeld) {
		l.forget(h)
	}
	return 0, err
}

// Close ends the session, and no hold.
func (l *table) Close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return nil
	}
	return end(l.conn)
}
