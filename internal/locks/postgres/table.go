package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/database"
)

// tableLock has the statements of a lock that a row with an owner is. Each has a reply with a row, the token (0: none),
// if it had an effect. Their parameters are @name, @owner, @ms (the lease) and @now (the client's clock).
type tableLock map[database.Action]string

// uniqueRow is the lock of a row that exists while it is held.
func uniqueRow() tableLock {
	return tableLock{
		database.Acquire: `INSERT INTO locks (name, owner) VALUES (@name, @owner) ON CONFLICT DO NOTHING
			RETURNING 0::bigint`,
		database.Release: `DELETE FROM locks WHERE name = @name AND owner = @owner RETURNING 0::bigint`,
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
		database.Acquire: by(`INSERT INTO locks AS l VALUES (@name, @owner, 1, UNTIL)
			ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, token = l.token + 1, expires = EXCLUDED.expires
			WHERE l.owner IS NULL OR l.expires <= NOW RETURNING l.token`),
		database.Renew: by(`UPDATE locks SET expires = UNTIL
			WHERE name = @name AND owner = @owner AND expires > NOW RETURNING token`),
		database.Release: by(`UPDATE locks SET owner = NULL, expires = NULL
			WHERE name = @name AND owner = @owner AND expires > NOW RETURNING token`),
	}
}

// rowSession is a session that executes the statements of such a lock.
type rowSession struct {
	tableLock
	conn *pgx.Conn
}

func opensTable(l tableLock) openFunc {
	return func(s client.Setup, _ func(client.Reply)) (client.Locker, error) {
		config, err := configure(s)
		if err != nil {
			return nil, err
		}
		t := &database.Table{Leased: l[database.Renew] != "", Unsent: pgconn.SafeToRetry}
		t.Begin = func(ctx context.Context) (database.RowSession, error) {
			c, err := connect(ctx, config, "")
			return rowSession{l, c}, err
		}
		return t, t.Prepare(s)
	}
}

// Ping returns an error if the session has ended.
func (s rowSession) Ping(ctx context.Context) error { return s.conn.Ping(ctx) }

// Execute executes a statement.
func (s rowSession) Execute(ctx context.Context, do database.Action, row database.Row) (token uint64, err error) {
	err = s.conn.QueryRow(ctx, s.tableLock[do], pgx.NamedArgs{
		"name": row.Name, "owner": row.Owner, "ms": row.Lease.Milliseconds(), "now": row.Now,
	}).Scan(&token)
	if errors.Is(err, pgx.ErrNoRows) {
		err = database.ErrNoEffect
	}
	return token, err
}

// End ends the session.
func (s rowSession) End() error { return end(s.conn) }
