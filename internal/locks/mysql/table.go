package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/database"
)

// tableLock has the statements of a lock that a row with an owner is. :name, :owner and :us (the lease, in
// microseconds) are their parameters. A statement has an effect if it changes a row, or if it sets LAST_INSERT_ID, as
// one does that finds its row and does not change it. That is also the token.
type tableLock map[database.Action]string

// uniqueRow is the lock of a row that exists while it is held.
func uniqueRow() tableLock {
	return tableLock{
		database.Acquire: `INSERT INTO locks (name, owner) VALUES (:name, :owner)`,
		database.Release: `DELETE FROM locks WHERE name = :name AND owner = :owner`,
	}
}

// leasedRow is the lock of a row whose lease ends by the server's clock. The row stays, so that its token grows, and
// has always an end, by which alone it is free: assignments are executed in their order, and the end is the last.
// The clock shows when a statement began: one that waited for another compares, and writes, an earlier time.
func leasedRow() tableLock {
	by := func(statement string) string {
		statement = strings.ReplaceAll(statement, "UNTIL", "NOW + INTERVAL :us MICROSECOND")
		return strings.ReplaceAll(statement, "NOW", "UTC_TIMESTAMP(6)")
	}
	return tableLock{
		database.Acquire: by(`INSERT INTO locks (name, owner, token, expires) VALUES (:name, :owner, 1, UNTIL)
			ON DUPLICATE KEY UPDATE token = IF(expires <= NOW, LAST_INSERT_ID(token + 1), token),
			owner = IF(expires <= NOW, VALUES(owner), owner), expires = IF(expires <= NOW, VALUES(expires), expires)`),
		database.Renew: by(`UPDATE locks SET expires = UNTIL, token = LAST_INSERT_ID(token)
			WHERE name = :name AND owner = :owner AND expires > NOW`),
		database.Release: by(`UPDATE locks SET owner = NULL, expires = '1970-01-01'
			WHERE name = :name AND owner = :owner AND expires > NOW`),
	}
}

// fill returns a statement with ? for each parameter, and their values.
func fill(statement string, row database.Row) (string, []any) {
	values := map[string]any{":name": row.Name, ":owner": row.Owner, ":us": row.Lease.Microseconds()}
	var args []any
	for {
		first := len(statement)
		name := ""
		for n := range values { // order does not matter: the first one in the statement counts
			if i := strings.Index(statement, n); i >= 0 && i < first {
				first, name = i, n
			}
		}
		if name == "" {
			return statement, args
		}
		statement = statement[:first] + "?" + statement[first+len(name):]
		args = append(args, values[name])
	}
}

// rowSession is a session that executes the statements of such a lock.
type rowSession struct {
	session
	statements tableLock
}

func opensTable(l tableLock) openFunc {
	return func(s client.Setup, _ func(client.Reply)) (client.Locker, error) {
		config, err := configure(s)
		if err != nil {
			return nil, err
		}
		t := &database.Table{
			Leased: l[database.Renew] != "",
			Unsent: func(err error) bool { return errors.Is(err, driver.ErrBadConn) },
		}
		t.Begin = func(ctx context.Context) (database.RowSession, error) {
			c, err := connect(ctx, config, "")
			if err != nil {
				return nil, err
			}
			return rowSession{c, l}, nil
		}
		return t, t.Prepare(s)
	}
}

// Ping returns an error if the session has ended.
func (s rowSession) Ping(ctx context.Context) error { return s.PingContext(ctx) }

// Execute executes a statement.
func (s rowSession) Execute(ctx context.Context, do database.Action, row database.Row) (token uint64, err error) {
	statement, args := fill(s.statements[do], row)
	result, err := s.ExecContext(ctx, statement, args...)
	if do == database.Acquire && refused(err, duplicateKey, waitTimeout, deadlock) {
		return 0, database.ErrNoEffect // it was rolled back
	}
	if err != nil {
		return 0, err
	}
	changed, err := result.RowsAffected()
	if err != nil {
		return 0, err
	}
	id, err := result.LastInsertId()
	switch {
	case err == nil && changed == 0 && id == 0:
		return 0, database.ErrNoEffect
	case do == database.Acquire && id == 0 && s.statements[database.Renew] != "":
		id = 1 // of a new row
	}
	return uint64(id), err
}
