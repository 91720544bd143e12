package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/database"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
)

func opensSession(of func(session) database.Session) openFunc {
	return func(s client.Setup, _ func(client.Reply)) (client.Locker, error) {
		config, err := configure(s)
		if err == nil {
			config.MultiStatements = true // a row is locked, and gets its owner, in one request
		}
		return &database.Sessions{Begin: func(ctx context.Context, owner string) (database.Session, error) {
			c, err := connect(ctx, config, owner)
			if err != nil {
				return nil, err
			}
			return of(c), nil
		}}, err
	}
}

// rest is how long a request may still wait, at least a millisecond, and the same in whole seconds, rounded up.
func rest(a client.Acquire, began time.Time) (wait time.Duration, seconds int) {
	wait = max(a.Wait-time.Since(began), time.Millisecond)
	return wait, int(math.Ceil(wait.Seconds()))
}

// namedLock is the lock of a session: GET_LOCK. Names of locks have at most 64 characters, and their case does not
// matter: a hash has none of these limits.
type namedLock struct{ session }

// Acquire acquires the lock.
func (s namedLock) Acquire(ctx context.Context, a client.Acquire, began time.Time) error {
	statement := "SELECT GET_LOCK(SHA2(?, 256), 0)"
	if a.Wait > 0 {
		wait, seconds := rest(a, began)
		statement = bounded(wait, fmt.Sprintf("GET_LOCK(SHA2(?, 256), %d)", seconds))
	}
	var granted sql.NullBool
	err := s.QueryRowContext(ctx, statement, a.Key).Scan(&granted)
	if refused(err, statementTimeout, queryTimeout) || err == nil && !granted.Bool {
		return lock.ErrHeld
	}
	return err
}

// Release releases the lock.
func (s namedLock) Release(ctx context.Context, h client.Hold) error {
	var released sql.NullBool
	err := s.QueryRowContext(ctx, "SELECT RELEASE_LOCK(SHA2(?, 256))", h.Key).Scan(&released)
	if err == nil && !released.Bool {
		err = client.ErrNotHeld
	}
	return err
}

// lockedRow is the lock of a row: SELECT … FOR UPDATE. The same request writes the owner to the row, for the witness: a
// client that is stopped as soon as it has the lock sends no other one. The transaction is rolled back when the lock is
// released.
type lockedRow struct{ session }

// Acquire acquires the lock.
func (s lockedRow) Acquire(ctx context.Context, a client.Acquire, began time.Time) error {
	wait, seconds := rest(a, began)
	_, err := s.ExecContext(ctx, fmt.Sprintf("SET SESSION innodb_lock_wait_timeout = %d", seconds))
	if err == nil {
		err = s.exist(ctx, a.Key)
	}
	if err == nil {
		_, err = s.ExecContext(ctx, "START TRANSACTION")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", native.ErrNoSession, err) // the lock was not requested
	}
	statement := "SELECT 1 FROM locks WHERE name = ? FOR UPDATE NOWAIT"
	if a.Wait > 0 {
		statement = bounded(wait, "1 FROM locks WHERE name = ? FOR UPDATE")
	}
	locked, err := s.lockRow(ctx, statement+"; UPDATE locks SET owner = ? WHERE name = ?", a.Key, a.Owner, a.Key)
	switch {
	case refused(err, statementTimeout, queryTimeout, waitTimeout, wouldWait):
		return lock.ErrHeld
	case err == nil && !locked: // the client that creates the row has not committed it
		return fmt.Errorf("%w: the row does not exist yet", native.ErrNoSession)
	}
	return err
}

// lockRow sends a statement that locks a row and one that changes it, and reports whether there is such a row. The
// server executes the second one if the first one did not fail.
func (s lockedRow) lockRow(ctx context.Context, statements string, args ...any) (locked bool, err error) {
	rows, err := s.QueryContext(ctx, statements, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	locked = rows.Next()
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() { // nothing is left
			continue
		}
	}
	return locked, rows.Err()
}

// exist creates the row if it is missing. An INSERT waits if the row is locked, and locks it for a moment if it is not,
// so that a try may be refused at the first use of a name; a read does neither.
func (s lockedRow) exist(ctx context.Context, name string) error {
	var one int
	err := s.QueryRowContext(ctx, "SELECT 1 FROM locks WHERE name = ?", name).Scan(&one)
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = s.ExecContext(ctx, "/*M!100300 SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ "+
		"INSERT INTO locks (name) VALUES (?)", name)
	if refused(err, duplicateKey, waitTimeout) {
		return nil // another client has created it, and may have locked it
	}
	return err
}

// Release releases the lock.
func (s lockedRow) Release(ctx context.Context, _ client.Hold) error {
	_, err := s.ExecContext(ctx, "ROLLBACK")
	return err
}
