package process

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
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
	return postgres.Config(p.topology.Options, s.location.IP, s.location.Port)
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
		if err := p.initialize(s); err != nil {
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

// initialize makes a new database, whose user has the password of the run.
func (p postgresSoftware) initialize(s *server) error {
	secret := filepath.Join(s.disk, "password")
	if err := os.WriteFile(secret, []byte(p.password+"\n"), 0o600); err != nil {
		return err
	}
	defer os.Remove(secret)
	if err := p.hand(s, secret); err != nil {
		return err
	}
	initdb, err := startChild(p.ledger, child.Spec{
		Path: filepath.Join(filepath.Dir(p.program), "initdb"), Args: postgres.NewDatabase(postgresData(s), secret),
		Dir: s.disk, Env: os.Environ(), Stderr: s.logFile, User: s.user,
	})
	if err == nil {
		err = initdb.Wait()
	}
	if err != nil {
		return fmt.Errorf("%w: initdb: %w; its log ends with:\n%s", cluster.ErrEnvironment, err, s.tail())
	}
	return postgres.Allow(postgresData(s))
}

// ping connects, and makes the table of the locks where it is missing.
func (postgresSoftware) ping(ctx context.Context, s *server) error {
	return s.reader.(*postgres.Reader).Prepare(ctx)
}

// time is the value of clock_timestamp().
func (postgresSoftware) time(ctx context.Context, s *server) (time.Time, error) {
	return s.reader.(*postgres.Reader).Time(ctx)
}
