// Package postgres opens the locks on PostgreSQL of the catalog. It is apart from package locks, so that programs that
// drive no lock on PostgreSQL do not link its driver. Read [Opens].
package postgres

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/topology"
)

// Opens returns a row of the catalog, which describes a lock on PostgreSQL, so that it can be opened. Other rows stay
// as they are.
func Opens(row client.Spec) client.Spec {
	switch row.Name {
	case "pg-advisory":
		row.Open = opensSession(advisory())
	case "pg-advisory-xact":
		row.Open = opensSession(advisoryTransaction())
	case "pg-row":
		row.Open = opensSession(lockedRow())
	case "sql-unique":
		row.Open = opensTable(uniqueRow())
	case "sql-lease":
		row.Open = opensTable(leasedRow(serverNow))
	case "sql-lease-client-clock":
		row.Open = opensTable(leasedRow(clientNow))
	}
	return row
}

type openFunc = func(s client.Setup, notify func(client.Reply)) (client.Locker, error)

// configure returns how clients of s connect.
func configure(s client.Setup) (*pgx.ConnConfig, error) {
	if len(s.Endpoints.Addrs) != 1 {
		return nil, fmt.Errorf("setup: endpoints of topology %q have no address of one server", s.Endpoints.Kind)
	}
	dial, err := native.Dialer(s)
	if err != nil {
		return nil, err
	}
	host, text, err := net.SplitHostPort(s.Endpoints.Addrs[0])
	if err != nil {
		return nil, fmt.Errorf("setup: %w", err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("setup: %w", err)
	}
	c, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, fmt.Errorf("setup: %w", err)
	}
	c.Host, c.Port, c.Fallbacks = host, uint16(port), nil
	c.User, c.Database, c.Password = topology.PostgresUser, topology.PostgresUser, s.Endpoints.Password
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) { return dial(ctx, network, addr) }
	return c, nil
}

// connect begins a session, which the harness calls by that name. The error is [native.ErrNoSession].
func connect(ctx context.Context, config *pgx.ConnConfig, name string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, native.RequestTimeout)
	defer cancel()
	own := config.Copy()
	if name != "" {
		own.RuntimeParams["application_name"] = name
	}
	c, err := pgx.ConnectConfig(ctx, own)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", native.ErrNoSession, err)
	}
	return c, nil
}

// closeWait bounds the end of a session, whose connection may be dead.
const closeWait = 100 * time.Millisecond

func end(c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	return c.Close(ctx)
}
