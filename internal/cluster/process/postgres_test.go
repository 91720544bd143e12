package process

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/installed"
	"github.com/lockchaos/lockchaos/topology"
)

// postgresUp is up for a PostgreSQL server and its standbys, with an option.
func postgresUp(t *testing.T, standbys int, option ...string) *Cluster {
	t.Helper()
	if _, err := installed.Postgres(t.Context()); err != nil {
		t.Skip("NOT RUN: ", err)
	}
	pg := cluster.Topology{Kind: cluster.Postgres, Replicas: standbys}
	if len(option) > 0 {
		pg.Options = map[string]string{option[0]: option[1]}
	}
	return up(t, pg)
}

// session is a session of client 0, through the gate.
func session(t *testing.T, c *Cluster) *pgx.Conn {
	t.Helper()
	e := c.Endpoints(0)
	config, err := pgx.ParseConfig("sslmode=disable application_name=alice host=" + e.Addrs[0][:len("127.0.2.1")])
	if err != nil {
		t.Fatal(err)
	}
	config.Port = c.nodes[0].location.Gate.Port()
	config.User, config.Database = topology.PostgresUser, topology.PostgresUser
	config.Password = e.Password
	config.DialFunc = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(e.Source)}}).DialContext
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// TestPostgresHolders: samples show the holders of advisory locks, of locked rows and of rows with an owner, until they
// release or their lease ends.
func TestPostgresHolders(t *testing.T) {
	c := postgresUp(t, 0)
	conn := session(t, c)
	keys := []string{"advisory", "row", "lease", "over", "free"}
	execute(t, conn, `SELECT pg_advisory_lock(hashtextextended('advisory', 0))`)
	execute(t, conn, `INSERT INTO locks (name) VALUES ('row'), ('free')`)
	execute(t, conn, `INSERT INTO locks VALUES ('lease', 'bob', 7, clock_timestamp() + interval '1 minute'),
		('over', 'bob', 7, clock_timestamp())`)
	execute(t, conn, `BEGIN; SELECT * FROM locks WHERE name = 'row' FOR UPDATE`)
	held := look(t, c, "n1", keys...)
	if !held.Up || held.Role != "master" || len(held.Keys) != 3 {
		t.Fatalf("a sample with three locks held: %+v", held)
	}
	lease := held.Keys["lease"]
	if held.Keys["advisory"].Owner != "alice" || held.Keys["row"].Owner != "alice" || lease.Owner != "bob" ||
		lease.Token != 7 || lease.TTL <= 0 || lease.TTL > time.Minute || held.Keys["row"].TTL >= 0 {
		t.Errorf("holders: %+v", held.Keys)
	}
	execute(t, conn, `ROLLBACK`)
	execute(t, conn, `SELECT pg_advisory_unlock_all()`)
	if s := look(t, c, "n1", keys...); len(s.Keys) != 1 || s.Keys["lease"].Owner != "bob" {
		t.Errorf("after the release of two locks: %+v", s)
	}
}

// TestPostgresPaused: while a server is stopped, none of its processes replies, not even an open session's.
func TestPostgresPaused(t *testing.T) {
	c := postgresUp(t, 0)
	conn := session(t, c)
	if err := c.Pause(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	replied := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), `SELECT 1`)
		replied <- err
	}()
	select {
	case err := <-replied:
		t.Errorf("a stopped server replied: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := c.Resume(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	if err := <-replied; err != nil {
		t.Errorf("after it was resumed: %v", err)
	}
}

// TestPostgresKilled: committed data are there after a kill, and sessions are not. A server with an empty disk has a
// new database.
func TestPostgresKilled(t *testing.T) {
	c := postgresUp(t, 0)
	conn := session(t, c)
	execute(t, conn, `INSERT INTO locks VALUES ('kept', 'bob')`)
	execute(t, conn, `SELECT pg_advisory_lock(hashtextextended('session', 0))`)
	restart := func() {
		t.Helper()
		if err := c.Restart(t.Context(), "n1"); err != nil {
			t.Fatal(err)
		}
	}
	kill := func() {
		t.Helper()
		if err := c.Kill(t.Context(), "n1"); err != nil {
			t.Fatal(err)
		}
	}
	kill()
	if s := c.Sample(t.Context(), "n1", nil); s.Up {
		t.Errorf("a killed server: %+v", s)
	}
	restart()
	if s := look(t, c, "n1", "kept", "session"); len(s.Keys) != 1 || s.Keys["kept"].Owner != "bob" {
		t.Errorf("after a restart: %+v", s)
	}
	kill()
	if err := c.Wipe(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	restart()
	if s := look(t, c, "n1", "kept"); len(s.Keys) != 0 {
		t.Errorf("after a restart with an empty disk: %+v", s)
	}
}

// TestPostgresStandby: a standby has what its primary has committed, but no lock of a session. When it is promoted, the
// primary's address leads to it, and commits that replication had held back are lost. A standby with an empty disk is a
// new copy.
func TestPostgresStandby(t *testing.T) {
	c := postgresUp(t, 1)
	ctx := t.Context()
	keys := []string{"kept", "lost", "session"}
	if e := c.Endpoints(0); !slices.Equal(e.Addrs, []string{c.nodes[0].gate.Addr()}) {
		t.Errorf("clients know %v, want the primary", e.Addrs)
	}
	conn := session(t, c)
	execute(t, conn, `INSERT INTO locks VALUES ('kept', 'bob')`)
	execute(t, conn, `SELECT pg_advisory_lock(hashtextextended('session', 0))`)
	waitFor(t, "the standby has the committed row, and no lock of a session", func() bool {
		s := look(t, c, "n2", keys...)
		return s.Role == "slave" && len(s.Keys) == 1 && s.Keys["kept"].Owner == "bob"
	})
	must(t, c.Kill(ctx, "n2"))
	must(t, c.Wipe(ctx, "n2"))
	must(t, c.Restart(ctx, "n2"))
	waitFor(t, "a copy follows the primary", func() bool { return look(t, c, "n1").Replicas == 1 })
	if s := look(t, c, "n2", keys...); s.Role != "slave" || len(s.Keys) != 1 {
		t.Errorf("a standby that was wiped: %+v", s)
	}
	must(t, c.SetRule(cluster.Link{From: "n2", To: "n1"}, cluster.Back, cluster.Rule{Mode: cluster.Hold}))
	execute(t, conn, `INSERT INTO locks VALUES ('lost', 'bob')`)
	must(t, c.Promote(ctx))
	if _, err := conn.Exec(ctx, `SELECT 1`); err == nil {
		t.Error("the connection to the old primary was not reset")
	}
	if s := look(t, c, "n2", keys...); s.Role != "master" || len(s.Keys) != 1 || s.Keys["kept"].Owner != "bob" {
		t.Errorf("the promoted standby: %+v", s)
	}
	execute(t, session(t, c), `INSERT INTO locks VALUES ('after', 'alice')`)
	if s := look(t, c, "n2", "after"); s.Keys["after"].Owner != "alice" {
		t.Errorf("after a write to the address of the primary: %+v", s)
	}
	if err := c.Promote(ctx); !errors.Is(err, cluster.ErrDown) {
		t.Errorf("promoting where no standby is left: %v", err)
	}
	must(t, c.Kill(ctx, "n2"))
	must(t, c.Wipe(ctx, "n2"))
	must(t, c.Restart(ctx, "n2"))
	if s := look(t, c, "n2", keys...); s.Role != "master" || len(s.Keys) != 0 {
		t.Errorf("after its promotion, a server with an empty disk has a new database: %+v", s)
	}
}

// TestPostgresSynchronous: with a standby that has to confirm them, no commit succeeds while replication is held, and
// the promoted standby, which nobody follows, confirms its own. The primary was killed before.
func TestPostgresSynchronous(t *testing.T) {
	c := postgresUp(t, 1, cluster.StandbyNames, "*")
	ctx := t.Context()
	conn := session(t, c)
	execute(t, conn, `INSERT INTO locks VALUES ('kept', 'bob')`)
	must(t, c.SetRule(cluster.Link{From: "n2", To: "n1"}, cluster.Back, cluster.Rule{Mode: cluster.Hold}))
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := conn.Exec(short, `INSERT INTO locks VALUES ('lost', 'bob')`); err == nil {
		t.Error("a commit succeeded that the standby did not have")
	}
	must(t, c.Kill(ctx, "n1"))
	must(t, c.Promote(ctx))
	execute(t, session(t, c), `INSERT INTO locks VALUES ('after', 'alice')`)
	if s := look(t, c, "n2", "kept", "lost", "after"); len(s.Keys) != 2 || s.Keys["kept"].Owner != "bob" {
		t.Errorf("the promoted standby: %+v", s)
	}
	must(t, c.Restart(ctx, "n1"))
	execute(t, session(t, c), `INSERT INTO locks VALUES ('last', 'alice')`)
	if s := look(t, c, "n2", "last"); s.Keys["last"].Owner != "alice" {
		t.Errorf("the address leads to the old primary again: %+v", s)
	}
}

// TestPostgresMissing: the error for a machine without PostgreSQL says how to install it.
func TestPostgresMissing(t *testing.T) {
	t.Setenv("LOCKCHAOS_POSTGRES", filepath.Join(t.TempDir(), "postgres"))
	if _, err := installed.Postgres(t.Context()); !errors.Is(err, cluster.ErrEnvironment) {
		t.Errorf("without PostgreSQL: %v", err)
	}
}
