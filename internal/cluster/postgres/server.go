package postgres

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/database"
	"github.com/lockchaos/lockchaos/topology"
)

// Kind is PostgreSQL, whose programs are in one directory.
type Kind struct{}

var _ database.Kind = Kind{}

// Users are the users that packages create, and a user of every system.
func (Kind) Users() []string { return []string{"postgres", "nobody"} }

// Config sets shared memory in files, which needs no removal after a kill.
func (Kind) Config(s database.Server) string {
	settings := map[string]string{
		"max_connections": "200", "dynamic_shared_memory_type": "mmap", "unix_socket_directories": "",
		"log_timezone": "UTC", "log_line_prefix": "%m [%p] %q%a ",
	}
	maps.Copy(settings, s.Options)
	settings["listen_addresses"], settings["port"] = s.At.Addr().String(), strconv.Itoa(int(s.At.Port()))
	if s.Primary.IsValid() {
		delete(settings, cluster.StandbyNames)            // when it is promoted, nobody follows it
		settings["wal_retrieve_retry_interval"] = "100ms" // it follows again soon after a restart of the primary
		settings["primary_conninfo"] = conninfo(s) + " password=" + s.Password
	}
	return database.Lines(settings, "%s = '%s'\n")
}

// conninfo is where the primary of a standby is. It overrides what the user's environment says about other servers.
func conninfo(s database.Server) string {
	return fmt.Sprintf("host=%s hostaddr=%[1]s port=%d user=%s sslmode=disable gssencmode=disable", s.Primary.Addr(),
		s.Primary.Port(), topology.PostgresUser)
}

// Prepare makes a new database, whose user has the password of the run, or, for a standby, a copy of the primary.
func (Kind) Prepare(s database.Server, run func(tool child.Spec) error) ([]string, error) {
	args := []string{"-D", s.Data(), "--config-file=" + s.Conf}
	if err := s.Hand(s.Disk, s.Conf); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(s.Data(), "PG_VERSION")); err == nil {
		return args, stand(s)
	}
	secret := filepath.Join(s.Disk, "password")
	defer os.Remove(secret)
	tool := func(name, password string, args ...string) error {
		if err := s.Secret(secret, password+"\n"); err != nil {
			return err
		}
		return run(child.Spec{
			Path: filepath.Join(filepath.Dir(s.Program), name), Args: append(args, "--pgdata="+s.Data(), "--no-sync"),
			Env: []string{"PGPASSFILE=" + secret},
		})
	}
	if s.Primary.IsValid() {
		// with a slot it would count, for a moment, as the standby that commits wait for
		if err := tool("pg_basebackup", "*:*:*:*:"+s.Password, "--dbname="+conninfo(s), "--no-password", "--no-slot",
			"--checkpoint=fast"); err != nil {
			return nil, err
		}
		return args, stand(s)
	}
	if err := tool("initdb", s.Password, "--username="+topology.PostgresUser, "--pwfile="+secret, "--auth=scram-sha-256",
		"--encoding=UTF8", "--no-locale", "--no-instructions"); err != nil {
		return nil, err
	}
	const local = "host all all 127.0.0.0/8 scram-sha-256\nhost replication all 127.0.0.0/8 scram-sha-256\n"
	return args, os.WriteFile(filepath.Join(s.Data(), "pg_hba.conf"), []byte(local), 0o600)
}

// stand makes a server with a copy of a primary its standby; it changes no other server.
func stand(s database.Server) error {
	if !s.Primary.IsValid() {
		return nil
	}
	return os.WriteFile(filepath.Join(s.Data(), "standby.signal"), nil, 0o644)
}

// RemoveInterlock removes the piece of shared memory by which a server recognizes another one that still runs on its
// disk, and which outlives a killed server. Its number is in the file of the process number.
func RemoveInterlock(disk string) {
	text, err := os.ReadFile(filepath.Join(database.Server{Disk: disk}.Data(), "postmaster.pid"))
	if err != nil {
		return // no server has been killed there
	}
	const keyLine, words = 6, 2
	lines := strings.Split(string(text), "\n")
	if len(lines) <= keyLine {
		return
	}
	if key := strings.Fields(lines[keyLine]); len(key) == words {
		if id, err := strconv.Atoi(key[1]); err == nil {
			_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		}
	}
}
