package mysql

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster/database"
	"github.com/lockchaos/lockchaos/topology"
)

// Kind is MariaDB or MySQL.
type Kind struct {
	// Installer is MariaDB's program that makes a database; "": the server is MySQL, which makes it itself.
	Installer string
}

var _ database.Kind = Kind{}

// Users are the users that packages create, and a user of every system.
func (Kind) Users() []string { return []string{"mysql", "nobody"} }

// startFile has the statements that the server executes before it accepts connections. It has the password.
func startFile(s database.Server) string { return filepath.Join(s.Dir, "start.sql") }

// Config sets buffers and files to small sizes, for a short start. The performance schema is on, and has little more
// than the names of sessions. Options with loose_ are not known to every server. There is no Unix socket.
func (Kind) Config(s database.Server) string {
	settings := map[string]string{
		"max_connections": "200", "default_time_zone": "+00:00", "skip_name_resolve": "ON", "loose_mysqlx": "OFF",
		"innodb_buffer_pool_size": "16M", "loose_innodb_log_file_size": "8M", "loose_innodb_redo_log_capacity": "8M",
		"innodb_autoextend_increment": "1", "innodb_data_file_path": "ibdata1:5M:autoextend",
		"key_buffer_size": "1M", "loose_aria_pagecache_buffer_size": "1M",
		"performance_schema": "ON", "performance_schema_session_connect_attrs_size": "2048",
		"performance_schema_digests_size": "0", "performance_schema_max_table_instances": "0",
		"performance_schema_events_waits_history_long_size":      "0",
		"performance_schema_events_statements_history_long_size": "0",
	}
	maps.Copy(settings, s.Options)
	maps.Copy(settings, map[string]string{
		"bind_address": s.At.Addr().String(), "port": strconv.Itoa(int(s.At.Port())), "socket": "",
		"datadir": s.Data(), "tmpdir": s.Disk, "pid_file": filepath.Join(s.Disk, "pid"), "init_file": startFile(s),
	})
	return "[mysqld]\nskip_log_bin\n" + database.Lines(settings, "%s = %s\n")
}

// start are the statements by which a new database gets its only user, with the password of the run, and the
// table of the locks that are rows; see docs/explanation/mysql.md. Each is a line.
const start = `CREATE DATABASE IF NOT EXISTS %[1]s;
CREATE TABLE IF NOT EXISTS %[1]s.locks (name VARBINARY(1024) PRIMARY KEY, owner VARBINARY(1024), ` +
	`token BIGINT UNSIGNED NOT NULL DEFAULT 0, expires DATETIME(6)) ENGINE = InnoDB;
CREATE USER IF NOT EXISTS '%[1]s'@'%%' IDENTIFIED BY '%[2]s';
GRANT ALL PRIVILEGES ON *.* TO '%[1]s'@'%%';
DROP USER IF EXISTS 'root'@'localhost';
`

// Prepare makes a new database, unless the disk has one that was made completely.
func (k Kind) Prepare(s database.Server, run func(tool child.Spec) error) ([]string, error) {
	if err := s.Secret(startFile(s), fmt.Sprintf(start, topology.MySQLUser, s.Password)); err != nil {
		return nil, err
	}
	if err := s.Hand(s.Disk, s.Conf); err != nil {
		return nil, err
	}
	args, complete := []string{"--defaults-file=" + s.Conf}, filepath.Join(s.Disk, "complete")
	if _, err := os.Stat(complete); err == nil {
		return args, nil
	}
	if err := os.RemoveAll(s.Data()); err != nil {
		return nil, err
	}
	tool := child.Spec{Path: s.Program, Args: []string{args[0], "--initialize-insecure", "--init-file="}}
	if k.Installer != "" {
		tool = child.Spec{Path: k.Installer, Args: []string{
			args[0], "--datadir=" + s.Data(), "--basedir=" + filepath.Dir(filepath.Dir(s.Program)), "--skip-test-db",
			"--skip-name-resolve", "--auth-root-socket-user=root", // not one of this program's user as well
		}}
	}
	if err := run(tool); err != nil {
		return nil, err
	}
	return args, os.WriteFile(complete, nil, 0o644)
}
