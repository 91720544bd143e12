package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
)

// sessionLock is a lock that a session or its transaction has.
type sessionLock struct {
	before  string // statement before all others, for the key; "": none
	begin   string // "": no transaction
	try     string // waits for nothing; its reply has a row with true, or fails
	acquire string // waits for lock_timeout
	release string // its reply has no row with false
	keyed   bool   // release is for the key
}

// advisory is the lock of a session: pg_advisory_lock.
func advisory() sessionLock {
	return sessionLock{
		try:     `SELECT pg_try_advisory_lock(hashtextextended($1, 0))`,
		acquire: `SELECT pg_advisory_lock(hashtextextended($1, 0)) IS NOT NULL`,
		release: `SELECT pg_advisory_unlock(hashtextextended($1, 0))`, keyed: true,
	}
}

// advisoryTransaction is the lock of a transaction: pg_advisory_xact_lock.
func advisoryTransaction() sessionLock {
	return sessionLock{
		begin:   `BEGIN`,
		try:     `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))`,
		acquire: `SELECT pg_advisory_xact_lock(hashtextextended($1, 0)) IS NOT NULL`,
		release: `COMMIT`,
	}
}

// lockedRow is the lock of a row: SELECT … FOR UPDATE.
func lockedRow() sessionLock {
	return sessionLock{
		before:  `INSERT INTO locks (name) VALUES ($1) ON CONFLICT DO NOTHING`,
		begin:   `BEGIN`,
		try:     `SELECT true FROM locks WHERE name = $1 FOR UPDATE NOWAIT`,
		acquire: `SELECT true FROM locks WHERE name = $1 FOR UPDATE`,
		release: `COMMIT`,
	}
}

// sessions is a [client.Locker] with a session for each hold.
type sessions struct {
	sessionLock
	config *pgx.ConnConfig

	mu     sync.Mutex
	holds  map[native.HoldID]*pgx.Conn
	closed bool
}

func opensSession(l sessionLock) openFunc {
	return func(s client.Setup, _ func(client.Reply)) (client.Locker, error) {
		config, err := configure(s)
		return &sessions{sessionLock: l, config: config, holds: map[native.HoldID]*pgx.Conn{}}, err
	}
}

// Acquire begins a session and acquires the lock in it.
func (l *sessions) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	began := time.Now()
	c, err := connect(context.WithoutCancel(ctx), l.config, a.Owner) // the end of the wait does not end this
	if err != nil {
		return client.Grant{}, err
	}
	// the server ends the wait; this context ends it only if the server does not
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.Wait+native.RequestTimeout)
	defer cancel()
	if err := l.take(ctx, c, a, began); err != nil {
		_ = end(c)
		return client.Grant{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = end(c)
		return client.Grant{}, native.ErrNoSession
	}
	id := native.IDOf(a.Hold())
	if former := l.holds[id]; former != nil { // the server ended its session
		_ = end(former)
	}
	l.holds[id] = c
	return client.Grant{}, nil
}

// take acquires the lock in session c; its wait began at that time.
func (l *sessions) take(ctx context.Context, c *pgx.Conn, a client.Acquire, began time.Time) error {
	if l.before != "" {
		if _, err := c.Exec(ctx, l.before, a.Key); err != nil {
			return fmt.Errorf("%w: %w", native.ErrNoSession, err) // the lock was not requested
		}
	}
	statement := l.try
	setup := "SET lock_timeout = 0"
	if a.Wait > 0 {
		statement = l.acquire
		setup = fmt.Sprintf("SET lock_timeout = %d", max(1, (a.Wait-time.Since(began)).Milliseconds()))
	}
	if l.begin != "" {
		setup += "; " + l.begin
	}
	if _, err := c.Exec(ctx, setup); err != nil {
		return fmt.Errorf("%w: %w", native.ErrNoSession, err)
	}
	var granted bool
	err := c.QueryRow(ctx, statement, a.Key).Scan(&granted)
	const lockNotAvailable = "55P03"
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == lockNotAvailable ||
		err == nil && !granted {
		return lock.ErrHeld
	}
	return err
}

// Renew fails: there are no leases.
func (*sessions) Renew(context.Context, client.Hold, time.Duration) (client.Grant, error) {
	return client.Grant{}, client.ErrNotHeld
}

// Release releases the lock and ends its session.
func (l *sessions) Release(ctx context.Context, h client.Hold) (int, error) {
	l.mu.Lock()
	c := l.holds[native.IDOf(h)]
	delete(l.holds, native.IDOf(h))
	l.mu.Unlock()
	if c == nil {
		return 0, client.ErrNotHeld
	}
	defer func() { _ = end(c) }()
	ctx, cancel := context.WithTimeout(ctx, native.RequestTimeout)
	defer cancel()
	if !l.keyed {
		_, err := c.Exec(ctx, l.release)
		return 0, err
	}
	var released bool
	err := c.QueryRow(ctx, l.release, h.Key).Scan(&released)
	if err == nil && !released {
		err = client.ErrNotHeld
	}
	return 0, err
}

// Close ends all sessions, and so their holds.
func (l *sessions) Close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var errs []error
	for id, c := range l.holds { // in any order: they are independent
		errs = append(errs, end(c))
		delete(l.holds, id)
	}
	return errors.Join(errs...)
}
