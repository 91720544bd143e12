package process

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/gate"
	"github.com/lockchaos/lockchaos/internal/cluster/postgres"
)

// postgresSoftware is a PostgreSQL server.
type postgresSoftware struct{ ensemble }

func newPostgres(c *Cluster) postgresSoftware {
	c.password = rand.Text()
	return postgresSoftware{ensemble{c}}
}

// config is the configuration file of a server.
func (p postgresSoftware) config(s *server) string {
	if p.topology.MasterOf(s.I) == 0 {
		return postgres.Config(p.topology.Options, s.location.IP, s.location.Port)
	}
	options := maps.Clone(p.topology.Options)
	delete(options, cluster.StandbyNames) // when it is promoted, nobody follows it
	return postgres.Config(options, s.location.IP, s.location.Port) +
		postgres.Follow(p.nodes[0].location.BusGate, p.password)
}

func postgresData(s *server) string { return filepath.Join(s.disk, "data") }

// prepare gives the server its files and, where its disk is empty, a new database.
func (p postgresSoftware) prepare(s *server) (args []string, err error) {
	if s.user, err = postgres.User(); err != nil {
		return nil, err
	}
	if err := p.hand(s, s.disk, s.conf); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(postgresData(s), "PG_VERSION")); err != nil {
		if err := p.fill(s); err != nil {
			return nil, err
		}
	}
	return []string{"-D", postgresData(s), "--config-file=" + s.conf}, nil
}

// hand makes the user of s the owner of files in the directory of the run.
func (p postgresSoftware) hand(s *server, paths ...string) error {
	if s.user == nil {
		return nil
	}
	errs := []error{os.Chmod(p.data, 0o711)}
	for _, path := range paths {
		errs = append(errs, os.Chown(path, s.user.UID, s.user.GID))
	}
	return errors.Join(errs...)
}

// fill makes a new database, whose user has the password of the run, or, for a standby, a copy of the primary.
func (p postgresSoftware) fill(s *server) error {
	data, secret := postgresData(s), filepath.Join(s.disk, "password")
	program, args, line := "initdb", postgres.NewDatabase(data, secret), p.password
	standby := p.topology.MasterOf(s.I) > 0
	if standby {
		program, args, line = "pg_basebackup", postgres.Copy(data, p.nodes[0].location.BusGate), "*:*:*:*:"+p.password
	}
	if err := os.WriteFile(secret, []byte(line+"\n"), 0o600); err != nil {
		return err
	}
	defer os.Remove(secret)
	if err := p.hand(s, secret); err != nil {
		return err
	}
	tool, err := startChild(p.ledger, child.Spec{
		Path: filepath.Join(filepath.Dir(p.program), program), Args: args, Dir: s.disk,
		Env: append(os.Environ(), "PGPASSFILE="+secret), Stderr: s.logFile, User: s.user,
	})
	if err == nil {
		err = tool.Wait()
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w; its log ends with:\n%s", cluster.ErrEnvironment, program, err, s.tail())
	}
	if standby {
		return postgres.Stand(data)
	}
	return postgres.Allow(data)
}

// offset is the end of the write-ahead log of a standby.
func (p postgresSoftware) offset(ctx context.Context, s *server) (int64, bool) {
	seen := p.sample(ctx, s, nil)
	return seen.Offset, seen.Up && seen.Role == "slave"
}

// promote returns when the server accepts writes.
func (p postgresSoftware) promote(ctx context.Context, s *server) error {
	if err := s.reader.(*postgres.Reader).Promote(ctx); err != nil {
		return err
	}
	return poll(ctx, func() string {
		if p.sample(ctx, s, nil).Role != "master" {
			return "it is not promoted yet"
		}
		return ""
	})
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

// ping connects, and makes the table of the locks where it is missing.
func (postgresSoftware) ping(ctx context.Context, s *server) error {
	return s.reader.(*postgres.Reader).Prepare(ctx)
}

// time is the value of clock_timestamp().
func (postgresSoftware) time(ctx context.Context, s *server) (time.Time, error) {
	return s.reader.(*postgres.Reader).Time(ctx)
}
