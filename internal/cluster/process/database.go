package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/database"
	"github.com/lockchaos/lockchaos/internal/cluster/gate"
	"github.com/lockchaos/lockchaos/internal/cluster/postgres"
)

// databaseSoftware is a server of a SQL database.
type databaseSoftware struct {
	ensemble
	kind database.Kind
}

// databaseReader is the harness's own session at such a server.
type databaseReader interface {
	ensembleReader
	Prepare(ctx context.Context) error // connects, and makes what is missing for the locks
	Time(ctx context.Context) (time.Time, error)
}

func newDatabase(c *Cluster, kind database.Kind) databaseSoftware {
	c.password = rand.Text()
	return databaseSoftware{ensemble{c}, kind}
}

// at is where a server is.
func (d databaseSoftware) at(s *server) database.Server {
	place := database.Server{
		Program: d.program, Run: d.data, Dir: s.dir, Disk: s.disk, Conf: s.conf, Options: d.topology.Options,
		At: netip.AddrPortFrom(s.location.IP, uint16(s.location.Port)), Password: d.password, User: s.user,
	}
	if d.topology.MasterOf(s.I) > 0 && d.addressed() != s { // it has not been promoted
		place.Primary = d.nodes[0].location.BusGate
	}
	return place
}

func (d databaseSoftware) config(s *server) string { return d.kind.Config(d.at(s)) }

// prepare runs the tools that make a database as the server's user, and records them.
func (d databaseSoftware) prepare(ctx context.Context, s *server) (args []string, err error) {
	if s.user, err = database.User(d.kind.Users()); err != nil {
		return nil, err
	}
	return d.kind.Prepare(d.at(s), func(tool child.Spec) error {
		others := func(v string) bool { return strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "MYSQL") } // of the user
		tool.Env = append(slices.DeleteFunc(os.Environ(), others), tool.Env...)
		tool.Dir, tool.Stderr, tool.User = s.disk, s.logFile, s.user
		started, err := startChild(d.ledger, tool)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { _ = started.Kill() })
			err = started.Wait()
			stop()
		}
		if err != nil {
			err = fmt.Errorf("%w: %s: %w; its log ends with:\n%s", cluster.ErrEnvironment, filepath.Base(tool.Path),
				cmp.Or(ctx.Err(), err), s.tail())
		}
		return err
	})
}

// offset is the end of the write-ahead log of a standby.
func (d databaseSoftware) offset(ctx context.Context, s *server) (int64, bool) {
	seen := d.sample(ctx, s, nil)
	return seen.Offset, seen.Up && seen.Role == "slave"
}

// promote returns when the server accepts writes.
func (d databaseSoftware) promote(ctx context.Context, s *server) error {
	if err := s.reader.(*postgres.Reader).Promote(ctx); err != nil {
		return err
	}
	err := poll(ctx, func() string {
		if s.responsive() && d.sample(ctx, s, nil).Role != "master" {
			return "it is not promoted yet"
		}
		return ""
	})
	if err == nil && !s.responsive() {
		err = cluster.ErrDown
	}
	return err
}

// openReplicationGate opens the gate through which the other server follows s.
func (c *Cluster) openReplicationGate(s *server) (err error) {
	if c.topology.Replicas > 0 {
		name := c.nodes[len(c.nodes)-s.I].name
		s.bus, err = gate.Open(gate.Config{
			Listen: s.location.BusGate.String(), Target: s.location.target(),
			Identify: func(netip.AddrPort) string { return name },
		})
	}
	return err
}

func (databaseSoftware) ping(ctx context.Context, s *server) error {
	return s.reader.(databaseReader).Prepare(ctx)
}

// time is the time of the server's clock.
func (databaseSoftware) time(ctx context.Context, s *server) (time.Time, error) {
	return s.reader.(databaseReader).Time(ctx)
}
