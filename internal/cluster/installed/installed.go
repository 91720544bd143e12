// Package installed finds the software of servers on this machine. Read [Software] first. The errors wrap
// [cluster.ErrEnvironment] and say how to install missing software.
package installed

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Software is software that was found.
type Software struct {
	Program string // path
	Version string
	Library string // ZooKeeper: directory with its jar files; MariaDB: its program that makes a database
}

// zooKeeperDir is the environment variable that names the directory with ZooKeeper's jar files; empty: they are where
// scripts/zookeeper stores them.
const zooKeeperDir = "LOCKCHAOS_ZOOKEEPER"

// zooKeeperVersion is the version that scripts/zookeeper stores.
const zooKeeperVersion = "3.9.4"

// ZooKeeper finds Java and ZooKeeper's jar files.
func ZooKeeper() (in Software, err error) {
	const advice = "make setup, or scripts/zookeeper, gets it"
	if in.Program, err = exec.LookPath("java"); err != nil {
		return in, fmt.Errorf("%w: java not found (%w): ZooKeeper needs Java 11 or newer "+
			"(Debian, Ubuntu: apt-get install default-jre-headless)", cluster.ErrEnvironment, err)
	}
	in.Library = os.Getenv(zooKeeperDir)
	if in.Library == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return in, fmt.Errorf("%w: finding ZooKeeper: %w", cluster.ErrEnvironment, err)
		}
		in.Library = filepath.Join(cache, "lockchaos", "zookeeper-"+zooKeeperVersion)
	}
	jars, err := filepath.Glob(filepath.Join(in.Library, "zookeeper-[0-9]*.jar"))
	if err != nil || len(jars) != 1 {
		return in, fmt.Errorf("%w: ZooKeeper not found in %s (set %s to another directory): %s",
			cluster.ErrEnvironment, in.Library, zooKeeperDir, advice)
	}
	in.Version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), "zookeeper-"), ".jar")
	return in, nil
}

// etcdProgram is the environment variable that names the etcd program; empty: etcd on the PATH, or where scripts/etcd
// stores it.
const etcdProgram = "LOCKCHAOS_ETCD"

// etcdStored is where scripts/etcd stores the program, below the user's cache directory.
const etcdStored = "lockchaos/etcd/etcd"

// Etcd finds the program and its version.
func Etcd(ctx context.Context) (in Software, err error) {
	var stored []string
	if cache, err := os.UserCacheDir(); err == nil {
		stored = append(stored, filepath.Join(cache, etcdStored))
	}
	if in.Program, err = program(etcdProgram, "etcd", stored...); err != nil {
		return in, fmt.Errorf("%w: etcd not found (%w): needs etcd 3.4 or newer; make setup, or scripts/etcd, gets it "+
			"(Debian, Ubuntu: apt-get install etcd-server)", cluster.ErrEnvironment, err)
	}
	in.Version, err = version(ctx, in.Program, "etcd Version: ")
	return in, err
}

// postgresProgram is the environment variable that names the postgres program, with initdb beside it; empty: postgres
// on the PATH, or where packages of Linux distributions have it.
const postgresProgram = "LOCKCHAOS_POSTGRES"

// Postgres finds the program and its version.
func Postgres(ctx context.Context) (in Software, err error) {
	packaged, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	other, _ := filepath.Glob("/usr/pgsql-*/bin/postgres")
	if in.Program, err = program(postgresProgram, "postgres", append(packaged, other...)...); err != nil {
		return in, fmt.Errorf("%w: postgres not found (%w): install PostgreSQL (Debian, Ubuntu: apt-get install "+
			"postgresql), or set %s to its path", cluster.ErrEnvironment, err, postgresProgram)
	}
	if in.Program, err = filepath.EvalSymlinks(in.Program); err != nil {
		return in, fmt.Errorf("%w: %w", cluster.ErrEnvironment, err)
	}
	for _, tool := range []string{"initdb", "pg_basebackup"} {
		if _, err := exec.LookPath(filepath.Join(filepath.Dir(in.Program), tool)); err != nil {
			return in, fmt.Errorf("%w: PostgreSQL has no %s beside %s: %w", cluster.ErrEnvironment, tool, in.Program, err)
		}
	}
	in.Version, err = version(ctx, in.Program, "(PostgreSQL) ")
	return in, err
}

// mysqlProgram is the environment variable that names the server's program; empty: mariadbd or mysqld on the PATH, or
// where packages of Linux distributions have it.
const mysqlProgram = "LOCKCHAOS_MYSQL"

// MySQL finds the server of MariaDB, or else of MySQL, and its version.
func MySQL(ctx context.Context) (in Software, err error) {
	if in.Program, err = program(mysqlProgram, "mariadbd", "/usr/libexec/mysqld", "/usr/sbin/mysqld", "mysqld",
		"/usr/libexec/mariadbd", "/usr/sbin/mariadbd"); err != nil {
		return in, fmt.Errorf("%w: neither mariadbd nor mysqld found (%w): install MariaDB (Debian, Ubuntu: apt-get install "+
			"mariadb-server), or set %s to its path", cluster.ErrEnvironment, err, mysqlProgram)
	}
	if in.Program, err = filepath.EvalSymlinks(in.Program); err != nil {
		return in, fmt.Errorf("%w: %w", cluster.ErrEnvironment, err)
	}
	in.Version, err = version(ctx, in.Program, "Ver ", "--no-defaults")
	if err != nil || !strings.Contains(in.Version, "MariaDB") {
		return in, err
	}
	base := filepath.Dir(filepath.Dir(in.Program))
	const installer = "mariadb-install-db"
	for _, dir := range []string{filepath.Join(base, "scripts"), filepath.Join(base, "bin"), ""} { // "": on the PATH
		if in.Library, err = exec.LookPath(filepath.Join(dir, installer)); err == nil {
			return in, nil
		}
	}
	return in, fmt.Errorf("%w: %s of MariaDB %s not found: %w", cluster.ErrEnvironment, installer, in.Version, err)
}

// program finds the program that an environment variable names. If it names none, or this name, that is the program
// of this name on the PATH, or else the last one of elsewhere that can be executed.
func program(variable, name string, elsewhere ...string) (string, error) {
	if named := os.Getenv(variable); named != "" && named != name {
		return exec.LookPath(named)
	}
	found, err := exec.LookPath(name)
	for i := len(elsewhere) - 1; i >= 0 && err != nil; i-- {
		found, err = exec.LookPath(elsewhere[i])
	}
	return found, err
}

// version is the word after a text that the program prints with --version, and arguments before it.
func version(ctx context.Context, program, after string, first ...string) (string, error) {
	out, err := exec.CommandContext(ctx, program, append(first, "--version")...).Output()
	_, rest, _ := strings.Cut(string(out), after)
	if words := strings.Fields(rest); err == nil && len(words) > 0 {
		return words[0], nil
	}
	return "", fmt.Errorf("%w: %s --version: %q, %w", cluster.ErrEnvironment, program, out, err)
}
