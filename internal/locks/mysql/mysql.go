// Package mysql opens the locks on MariaDB and MySQL of the catalog. It is apart from package locks, so that programs
// that drive no lock on them do not link their driver. Read [Opens].
package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/database"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/topology"
)

// Opens returns a row of the catalog, which describes a lock on MariaDB or MySQL, so that it can be opened. It keeps
// how a row that also describes a lock on other servers is opened there. Other rows stay as they are.
func Opens(row client.Spec) client.Spec {
	here := openFunc(nil)
	switch row.Name {
	case "mysql-get-lock":
		here = opensSession(func(s session) database.Session { return namedLock{s} })
	case "mysql-row":
		here = opensSession(func(s session) database.Session { return lockedRow{s} })
	case "sql-unique":
		here = opensTable(uniqueRow())
	case "sql-lease":
		here = opensTable(leasedRow())
	default:
		return row
	}
	elsewhere := row.Open
	row.Open = func(s client.Setup, notify func(client.Reply)) (client.Locker, error) {
		if elsewhere != nil && s.Endpoints.Kind != topology.MySQL {
			return elsewhere(s, notify)
		}
		return here(s, notify)
	}
	return row
}

type openFunc = func(s client.Setup, notify func(client.Reply)) (client.Locker, error)

// configure returns how clients of s connect.
func configure(s client.Setup) (*mysql.Config, error) {
	if len(s.Endpoints.Addrs) != 1 {
		return nil, fmt.Errorf("setup: endpoints of topology %q have no address of one server", s.Endpoints.Kind)
	}
	dial, err := native.Dialer(s)
	if err != nil {
		return nil, err
	}
	c := mysql.NewConfig()
	c.User, c.Passwd, c.DBName = topology.MySQLUser, s.Endpoints.Password, topology.MySQLUser
	c.Net, c.Addr = "tcp", s.Endpoints.Addrs[0]
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) { return dial(ctx, network, addr) }
	c.InterpolateParams, c.Logger = true, &mysql.NopLogger{} // a statement with arguments is one request
	return c, nil
}

// session is a session of a server: of a pool that never has another one.
type session struct {
	*sql.Conn
	pool *sql.DB
}

// connect begins a session, which the harness calls by that name. The error is [native.ErrNoSession].
func connect(ctx context.Context, config *mysql.Config, name string) (session, error) {
	ctx, cancel := context.WithTimeout(ctx, native.RequestTimeout)
	defer cancel()
	own := config.Clone()
	own.ConnectionAttributes = "program_name:" + url.PathEscape(name) // which has no comma
	connector, err := mysql.NewConnector(own)
	if err != nil {
		return session{}, fmt.Errorf("%w: %w", native.ErrNoSession, err)
	}
	pool := sql.OpenDB(connector)
	c, err := pool.Conn(ctx)
	if err != nil {
		_ = pool.Close()
		return session{}, fmt.Errorf("%w: %w", native.ErrNoSession, err)
	}
	return session{c, pool}, nil
}

// End ends the session.
func (s session) End() error { return errors.Join(s.Close(), s.pool.Close()) }

// Errors of servers; see [mysql.MySQLError].
const (
	duplicateKey     = 1062
	waitTimeout      = 1205 // or, of MariaDB, a lock that is held and must not be waited for
	statementTimeout = 1969 // of MariaDB
	queryTimeout     = 3024 // of MySQL
	wouldWait        = 3572 // of MySQL: a lock that is held and must not be waited for
	deadlock         = 1213
)

// refused reports whether the server refused a request with one of these errors.
func refused(err error, numbers ...uint16) bool {
	reply := (*mysql.MySQLError)(nil)
	return errors.As(err, &reply) && slices.Contains(numbers, reply.Number)
}

// bounded returns a statement that the server ends after a wait: its own limits of waits are whole seconds. MariaDB
// executes the first comment, and MySQL the second one.
func bounded(wait time.Duration, selected string) string {
	return fmt.Sprintf("/*M!100300 SET STATEMENT max_statement_time = %.3f FOR */ SELECT /*+ MAX_EXECUTION_TIME(%d) */ %s",
		wait.Seconds(), wait.Milliseconds(), selected)
}
