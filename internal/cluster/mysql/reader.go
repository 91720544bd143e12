// Package mysql has the configuration of a MariaDB or MySQL server, and reads its locks for the harness, past the
// server's gate. It is no lock and no client under test.
//
// Read [Reader] first.
package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/topology"
)

// Reader is the harness's own session at a server. It may be used concurrently.
type Reader struct {
	sessions *sql.DB // one at most
}

// commandWait bounds one exchange if the context has no earlier deadline.
const commandWait = time.Second

// New returns a reader of the server at addr, which connects when it is first used. The caller closes it.
func New(addr, password string) *Reader {
	r := &Reader{sql.OpenDB(uncommitted{Connector(addr, password)})}
	r.sessions.SetMaxOpenConns(1)
	return r
}

// Connector returns the options of a session of the run's user at addr. Their statements have the texts of their
// arguments in them: a statement is one request.
func Connector(addr, password string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.DBName = topology.MySQLUser, password, topology.MySQLUser
	c.Net, c.Addr = "tcp", addr
	c.InterpolateParams, c.ParseTime, c.Logger = true, true, &mysql.NopLogger{}
	return c
}

// uncommitted begins sessions that read what others have written and not committed: the owner of a locked row.
type uncommitted struct{ *mysql.Config }

// Connect begins a session.
func (u uncommitted) Connect(ctx context.Context) (driver.Conn, error) {
	to, err := mysql.NewConnector(u.Config)
	if err != nil {
		return nil, err
	}
	c, err := to.Connect(ctx)
	if err != nil {
		return nil, err
	}
	_, err = c.(driver.ExecerContext).ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", nil)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Driver is the driver of MySQL.
func (uncommitted) Driver() driver.Driver { return &mysql.MySQLDriver{} }

// Close ends the session.
func (r *Reader) Close() { _ = r.sessions.Close() }

// Prepare connects: the server makes the table of the locks before it accepts connections.
func (r *Reader) Prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	return r.sessions.PingContext(ctx)
}

// Time is the server's clock.
func (r *Reader) Time(ctx context.Context) (now time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	return now, r.sessions.QueryRowContext(ctx, "SELECT UTC_TIMESTAMP(6)").Scan(&now)
}

// NameAttribute is the attribute of a connection that names its session.
const NameAttribute = "program_name"

// Name returns the name of a session as the attributes of its connection have it, which have no comma.
func Name(owner string) string { return NameAttribute + ":" + url.PathEscape(owner) }

// rows are the rows with an owner whose lease has not ended, rows of open transactions included.
const rows = `SELECT name, owner, token, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires) AS rest
  FROM locks WHERE owner IS NOT NULL AND (expires IS NULL OR expires > UTC_TIMESTAMP(6))`

// holders are the holders of locks, and whether a holder is a row's, or a session with a lock of GET_LOCK. Its %s are
// the names of the locks, each with the session that has it; a union is evaluated once for each name.
const holders = `WITH wanted AS (SELECT NULL AS name, NULL AS session%s)
SELECT name, owner, token, rest, TRUE FROM (` + rows + `) held WHERE name IN (SELECT name FROM wanted)
UNION ALL
SELECT w.name, a.ATTR_VALUE, 0, NULL, FALSE FROM wanted w
  JOIN performance_schema.session_connect_attrs a ON a.PROCESSLIST_ID = w.session AND a.ATTR_NAME = '` +
	NameAttribute + `'`

// Sample is the state of the server and the holder of each lock. Locks that nobody holds are left out.
func (r *Reader) Sample(ctx context.Context, keys []string) (history.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	s := history.Sample{Up: true, Role: "master"}
	if len(keys) == 0 {
		return s, r.sessions.PingContext(ctx)
	}
	const one = " UNION ALL SELECT ?, IS_USED_LOCK(SHA2(?, 256))"
	var args []any
	for _, key := range keys {
		args = append(args, key, key)
	}
	found, err := r.sessions.QueryContext(ctx, fmt.Sprintf(holders, strings.Repeat(one, len(keys))), args...)
	if err != nil {
		return s, err
	}
	defer found.Close()
	s.Keys = map[string]history.KeyState{}
	for found.Next() {
		var (
			name, owner string
			state       = history.KeyState{TTL: -1}
			rest        sql.NullInt64 // of the lease, in microseconds
			row         bool
		)
		if err := found.Scan(&name, &owner, &state.Token, &rest, &row); err != nil {
			return s, err
		}
		if rest.Valid {
			state.TTL = time.Duration(rest.Int64) * time.Microsecond
		}
		state.Owner = owner
		if unescaped, err := url.PathUnescape(owner); err == nil && !row {
			state.Owner = unescaped
		}
		if _, two := s.Keys[name]; two {
			return s, fmt.Errorf("lock %s has two holders in one sample", name)
		}
		s.Keys[name] = state
	}
	return s, cmp.Or(found.Err(), found.Close())
}

// Keys are the rows of locks that have an owner, with the rest of their lease. Locks of sessions end with these.
func (r *Reader) Keys(ctx context.Context) (map[string]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	found, err := r.sessions.QueryContext(ctx, rows)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	keys := map[string]time.Duration{}
	for found.Next() {
		var (
			name, owner string
			token       uint64
			rest        sql.NullInt64
		)
		if err := found.Scan(&name, &owner, &token, &rest); err != nil {
			return nil, err
		}
		keys[name] = -1
		if rest.Valid {
			keys[name] = time.Duration(rest.Int64) * time.Microsecond
		}
	}
	return keys, found.Err()
}
