package process

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/installed"
	"github.com/lockchaos/lockchaos/internal/cluster/mysql"
	"github.com/lockchaos/lockchaos/topology"
)

// mysqlUp is up for a MariaDB or MySQL server.
func mysqlUp(t *testing.T) *Cluster {
	t.Helper()
	if _, err := installed.MySQL(t.Context()); err != nil {
		t.Skip("NOT RUN: ", err)
	}
	return up(t, cluster.Topology{Kind: cluster.MySQL})
}

// mysqlSession is a session of client 0, through the gate, with that name.
func mysqlSession(t *testing.T, c *Cluster, name string) *sql.Conn {
	t.Helper()
	e := c.Endpoints(0)
	config := mysql.Connector(e.Addrs[0], e.Password)
	config.ConnectionAttributes = mysql.Name(name)
	config.DialFunc = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(e.Source)}}).DialContext
	connector, err := driver.NewConnector(config)
	must(t, err)
	sessions := sql.OpenDB(connector)
	conn, err := sessions.Conn(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = sessions.Close() })
	return conn
}

// query executes statements, each of which has one row with a number or none.
func query(t *testing.T, conn *sql.Conn, statements ...string) (number int) {
	t.Helper()
	for _, text := range statements {
		err := conn.QueryRowContext(t.Context(), text).Scan(&number)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return number
}

// TestMySQLHolders: samples show the holders of user-level locks, of locked rows and of rows with an owner, until they
// release or their lease ends. Names of locks and owners may have any characters.
func TestMySQLHolders(t *testing.T) {
	c := mysqlUp(t)
	const alice = "alice, of client:0/50%"
	conn := mysqlSession(t, c, alice)
	session := "A long name, " + strings.Repeat("ö", 100)
	keys := []string{session, strings.ToLower(session), "row", "lease", "over", "free"}
	if query(t, conn, `SELECT GET_LOCK(SHA2('`+session+`', 256), 0)`) != 1 {
		t.Fatal("the first session does not get a lock")
	}
	query(t, conn, `INSERT INTO locks (name) VALUES ('row'), ('free')`,
		`INSERT INTO locks VALUES ('lease', 'bob', 7, UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE),
		('over', 'bob', 7, UTC_TIMESTAMP(6))`,
		`BEGIN`, `SELECT 1 FROM locks WHERE name = 'row' FOR UPDATE`, `UPDATE locks SET owner = 'bob%2C' WHERE name = 'row'`)
	held := look(t, c, "n1", keys...)
	if !held.Up || held.Role != "master" || len(held.Keys) != 3 {
		t.Fatalf("a sample with three locks held: %+v", held)
	}
	lease := held.Keys["lease"]
	if held.Keys[session].Owner != alice || held.Keys["row"].Owner != "bob%2C" || lease.Owner != "bob" ||
		lease.Token != 7 || lease.TTL <= 0 || lease.TTL > time.Minute || held.Keys["row"].TTL >= 0 {
		t.Errorf("holders: %+v", held.Keys)
	}
	query(t, conn, `ROLLBACK`, `SELECT RELEASE_LOCK(SHA2('`+session+`', 256))`)
	if s := look(t, c, "n1", keys...); len(s.Keys) != 1 || s.Keys["lease"].Owner != "bob" {
		t.Errorf("after the release of two locks: %+v", s)
	}
	left, err := c.Keys(t.Context(), "n1")
	if rest := left["lease"]; err != nil || len(left) != 1 || rest <= 0 || rest > time.Minute {
		t.Errorf("keys: %v, %v", left, err)
	}
}

// TestMySQLPaused: while a server is stopped, it does not reply, not even in an open session.
func TestMySQLPaused(t *testing.T) {
	c := mysqlUp(t)
	conn := mysqlSession(t, c, "alice")
	must(t, c.Pause(t.Context(), "n1"))
	replied := make(chan error, 1)
	go func() { replied <- conn.PingContext(context.WithoutCancel(t.Context())) }()
	select {
	case err := <-replied:
		t.Errorf("a stopped server replied: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	must(t, c.Resume(t.Context(), "n1"))
	if err := <-replied; err != nil {
		t.Errorf("after it was resumed: %v", err)
	}
}

// TestMySQLKilled: committed data are there after a kill; sessions, and what was not committed, are not. A server with
// an empty disk, or with a database that was not made completely, has a new one.
func TestMySQLKilled(t *testing.T) {
	c := mysqlUp(t)
	conn := mysqlSession(t, c, "alice")
	query(t, conn, `INSERT INTO locks VALUES ('kept', 'bob', 0, NULL)`, `SELECT GET_LOCK(SHA2('session', 256), 0)`, `BEGIN`,
		`INSERT INTO locks VALUES ('open', 'alice', 0, NULL)`)
	keys := []string{"kept", "session", "open"}
	if s := look(t, c, "n1", keys...); len(s.Keys) != 3 {
		t.Errorf("before the kill: %+v", s)
	}
	must(t, c.Kill(t.Context(), "n1"))
	if s := c.Sample(t.Context(), "n1", nil); s.Up {
		t.Errorf("a killed server: %+v", s)
	}
	must(t, c.Restart(t.Context(), "n1"))
	waitFor(t, "the transaction that was open is rolled back", func() bool {
		s := look(t, c, "n1", keys...)
		return len(s.Keys) == 1 && s.Keys["kept"].Owner == "bob"
	})
	for _, empty := range []func() error{
		func() error { return c.Wipe(t.Context(), "n1") },
		func() error { return os.Remove(filepath.Join(c.nodes[0].disk, "complete")) },
	} {
		query(t, mysqlSession(t, c, "alice"), `INSERT IGNORE INTO locks VALUES ('kept', 'bob', 0, NULL)`)
		must(t, c.Kill(t.Context(), "n1"))
		must(t, empty())
		must(t, c.Restart(t.Context(), "n1"))
		if s := look(t, c, "n1", "kept"); len(s.Keys) != 0 {
			t.Errorf("after a restart with an empty disk: %+v", s)
		}
	}
}

// TestMySQLPassword: the user of the run is the only one that can connect, with the password alone.
func TestMySQLPassword(t *testing.T) {
	t.Setenv("USER", "alice") // the program that makes databases adds a user of that name, if nothing forbids it
	c := mysqlUp(t)
	for _, user := range []string{"root", "", topology.MySQLUser} {
		config := mysql.Connector(c.nodes[0].location.target(), "")
		config.User = user
		connector, err := driver.NewConnector(config)
		must(t, err)
		sessions := sql.OpenDB(connector)
		refused := (*driver.MySQLError)(nil)
		if err := sessions.PingContext(t.Context()); !errors.As(err, &refused) {
			t.Errorf("user %q connects without a password: %v", user, err)
		}
		must(t, sessions.Close())
	}
	users := query(t, mysqlSession(t, c, ""), `SELECT count(*) FROM mysql.user WHERE user NOT LIKE 'm%.%'`)
	if users != 1 {
		t.Errorf("%d users can connect", users)
	}
}

// TestMySQLMissing: the error for a machine without the server says how to install it.
func TestMySQLMissing(t *testing.T) {
	t.Setenv("LOCKCHAOS_MYSQL", filepath.Join(t.TempDir(), "mariadbd"))
	if _, err := installed.MySQL(t.Context()); !errors.Is(err, cluster.ErrEnvironment) ||
		!strings.Contains(err.Error(), "apt-get install mariadb-server") {
		t.Errorf("without the server: %v", err)
	}
}
