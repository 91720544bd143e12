package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/database"
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

// session is a session for one hold of such a lock.
type session struct {
	sessionLock
	conn *pgx.Conn
}

func opensSession(l sessionLock) openFunc {
	return func(s client.Setup, _ func(client.Reply)) (client.Locker, error) {
		config, err := configure(s)
		return &database.Sessions{Begin: func(ctx context.Context, owner string) (database.Session, error) {
			c, err := connect(ctx, config, owner)
			return session{l, c}, err
		}}, err
	}
}

// Acquire acquires the lock.
func (s session) Acquire(ctx context.Context, a client.Acquire, began time.Time) error {
	if s.before != "" {
		if _, err := s.conn.Exec(ctx, s.before, a.Key); err != nil {
			return fmt.Errorf("%w: %w", native.ErrNoSession, err) // the lock was not requested
		}
	}
	statement := s.try
	setup := "SET lock_timeout = 0"
	if a.Wait > 0 {
		statement = s.acquire
		setup = fmt.Sprintf("SET lock_timeout = %d", max(1, (a.Wait-time.Since(began)).Milliseconds()))
	}
	if s.begin != "" {
		setup += "; " + s.begin
	}
	if _, err := s.conn.Exec(ctx, setup); err != nil {
		return fmt.Errorf("%w: %w", native.ErrNoSession, err)
	}
	var granted bool
	err := s.conn.QueryRow(ctx, statement, a.Key).Scan(&granted)
	const lockNotAvailable = "55P03"
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == lockNotAvailable ||
		err == nil && !granted {
		return lock.ErrHeld
	}
	return err
}

// Release releases the lock.
func (s session) Release(ctx context.Context, h client.Hold) error {
	if !s.keyed {
		_, err := s.conn.Exec(ctx, s.release)
		return err
	}
	var released bool
	err := s.conn.QueryRow(ctx, s.release, h.Key).Scan(&released)
	if err == nil && !released {
		err = client.ErrNotHeld
	}
	return err
}

// End ends the session.
func (s session) End() error { return end(s.conn) }
