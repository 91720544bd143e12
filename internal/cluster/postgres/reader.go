// Package postgres has the configuration of a PostgreSQL server, and reads its locks for the harness, past the server's
// gate. It is no lock and no client under test.
//
// Read [Reader] first.
package postgres

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/topology"
)

// Reader is the harness's own session at a server. It may be used concurrently.
type Reader struct {
	config *pgx.ConnConfig
	err    error // of its address

	mu   sync.Mutex
	conn *pgx.Conn // nil before the first request
}

// commandWait bounds one exchange if the context has no earlier deadline.
const commandWait = time.Second

// New returns a reader of the server at addr, which connects when it is first used. The caller closes it.
func New(addr, password string) *Reader {
	r := &Reader{}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return &Reader{err: err}
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return &Reader{err: err}
	}
	if r.config, r.err = pgx.ParseConfig("sslmode=disable"); r.err == nil {
		r.config.Host, r.config.Port = host, uint16(number)
		r.config.User, r.config.Database, r.config.Password = topology.PostgresUser, topology.PostgresUser, password
		r.config.Fallbacks = nil
	}
	return r
}

// Close ends the session.
func (r *Reader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), commandWait)
		defer cancel()
		_ = r.conn.Close(ctx)
	}
}

// with calls do with the session, which it begins if there is none.
func (r *Reader) with(ctx context.Context, do func(ctx context.Context, c *pgx.Conn) error) error {
	if r.err != nil {
		return r.err
	}
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil || r.conn.IsClosed() {
		c, err := pgx.ConnectConfig(ctx, r.config)
		if err != nil {
			return err
		}
		r.conn = c
	}
	return do(ctx, r.conn)
}

// table is the table of the locks that are rows; see docs/explanation/postgres.md.
const table = `CREATE TABLE IF NOT EXISTS locks (
	name text PRIMARY KEY, owner text, token bigint NOT NULL DEFAULT 0, expires timestamptz)`

// Prepare makes the table of the locks, if a primary does not have it. It waits for no standby.
func (r *Reader) Prepare(ctx context.Context) error {
	return r.with(ctx, func(ctx context.Context, c *pgx.Conn) error {
		standby := false
		err := c.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&standby)
		if err == nil && !standby {
			_, err = c.Exec(ctx, "SET synchronous_commit = local; "+table)
		}
		return err
	})
}

// Promote asks a standby to become the primary; it returns before the server accepts writes.
func (r *Reader) Promote(ctx context.Context) error {
	return r.with(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SELECT pg_promote(wait => false)")
		return err
	})
}

// Time is the server's clock.
func (r *Reader) Time(ctx context.Context) (now time.Time, err error) {
	err = r.with(ctx, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	})
	return now, err
}

// holders are the holders of locks: of rows with an owner, whose lease has not ended; the sessions with an advisory
// lock; and the sessions whose transaction has locked a row. Sessions are called as their owners.
const holders = `WITH wanted AS (SELECT unnest($1::text[]) AS name)
SELECT l.name, l.owner, l.token, (extract(epoch FROM l.expires - clock_timestamp()) * 1e9)::bigint
  FROM locks l JOIN wanted USING (name)
 WHERE l.owner IS NOT NULL AND (l.expires IS NULL OR l.expires > clock_timestamp())
UNION ALL
SELECT w.name, a.application_name, 0, NULL
  FROM wanted w
  JOIN pg_locks p ON p.locktype = 'advisory' AND p.granted AND p.objsubid = 1
   AND (p.classid::bigint << 32 | p.objid::bigint) = hashtextextended(w.name, 0)
  JOIN pg_stat_activity a ON a.pid = p.pid
UNION ALL
SELECT l.name, a.application_name, 0, NULL
  FROM locks l JOIN wanted USING (name)
  JOIN pg_locks p ON p.locktype = 'transactionid' AND p.granted AND p.mode = 'ExclusiveLock'
   AND p.transactionid = l.xmax
  JOIN pg_stat_activity a ON a.pid = p.pid
 WHERE l.owner IS NULL AND a.application_name <> ''`

// state is whether the server is a standby, the end of its write-ahead log, and how many standbys follow it.
const state = `SELECT pg_is_in_recovery(), pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery()
	THEN greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) ELSE pg_current_wal_lsn() END, '0/0')::bigint,
	(SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming')`

// Sample is the state of the server and the holder of each lock. Locks that nobody holds are left out.
func (r *Reader) Sample(ctx context.Context, keys []string) (s history.Sample, err error) {
	s = history.Sample{Up: true, Role: "master"}
	err = r.with(ctx, func(ctx context.Context, c *pgx.Conn) error {
		standby, b := false, &pgx.Batch{}
		b.Queue(state).QueryRow(func(row pgx.Row) error { return row.Scan(&standby, &s.Offset, &s.Replicas) })
		if len(keys) > 0 {
			b.Queue(holders, keys).Query(func(rows pgx.Rows) (err error) {
				s.Keys, err = keyStates(rows)
				return err
			})
		}
		err := c.SendBatch(ctx, b).Close()
		if standby {
			s.Role = "slave"
		}
		return err
	})
	return s, err
}

func keyStates(rows pgx.Rows) (map[string]history.KeyState, error) {
	var (
		keys        = map[string]history.KeyState{}
		name, owner string
		token       int64
		rest        *int64
	)
	_, err := pgx.ForEachRow(rows, []any{&name, &owner, &token, &rest}, func() error {
		state := history.KeyState{Owner: owner, TTL: -1, Token: uint64(token)}
		if rest != nil {
			state.TTL = time.Duration(*rest)
		}
		if _, two := keys[name]; two {
			return fmt.Errorf("lock %s has two holders in one sample", name)
		}
		keys[name] = state
		return nil
	})
	return keys, err
}

// Keys are the rows of locks that have an owner, with the rest of their lease. Locks of sessions end with these.
func (r *Reader) Keys(ctx context.Context) (map[string]time.Duration, error) {
	found := map[string]time.Duration{}
	err := r.with(ctx, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, `SELECT name, (extract(epoch FROM expires - clock_timestamp()) * 1e9)::bigint
			FROM locks WHERE owner IS NOT NULL AND (expires IS NULL OR expires > clock_timestamp())`)
		if err != nil {
			return err
		}
		var (
			name string
			rest *int64
		)
		_, err = pgx.ForEachRow(rows, []any{&name, &rest}, func() error {
			found[name] = -1
			if rest != nil {
				found[name] = time.Duration(*rest)
			}
			return nil
		})
		return err
	})
	return found, err
}
