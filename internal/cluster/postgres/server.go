package postgres

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/topology"
)

// Config is the configuration file of a server at that address. Shared memory in files needs no removal after a kill.
func Config(options map[string]string, at netip.Addr, port int) string {
	settings := map[string]string{
		"max_connections": "200", "dynamic_shared_memory_type": "mmap", "unix_socket_directories": "",
		"log_timezone": "UTC", "log_line_prefix": "%m [%p] %q%a ",
	}
	maps.Copy(settings, options)
	settings["listen_addresses"], settings["port"] = at.String(), strconv.Itoa(port)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, settings[name])
	}
	return b.String()
}

// NewDatabase are the arguments of initdb for a new database in directory data, whose user has the password in a file.
func NewDatabase(data, passwordFile string) []string {
	return []string{
		"--pgdata=" + data, "--username=" + topology.PostgresUser, "--pwfile=" + passwordFile,
		"--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions",
	}
}

// Copy are the arguments of pg_basebackup for a standby in directory data, from the primary at that address. The
// password is in the file of environment variable PGPASSFILE.
func Copy(data string, from netip.AddrPort) []string {
	return []string{
		"--pgdata=" + data, "--host=" + from.Addr().String(), "--port=" + strconv.Itoa(int(from.Port())),
		"--username=" + topology.PostgresUser, "--no-password", "--checkpoint=fast", "--no-sync",
	}
}

// Follow are the lines of the configuration file of a standby: its primary.
func Follow(primary netip.AddrPort, password string) string {
	return fmt.Sprintf("primary_conninfo = 'host=%s port=%d user=%s password=%s'\n", primary.Addr(), primary.Port(),
		topology.PostgresUser, password)
}

// Stand makes the copy of a primary in directory data a standby.
func Stand(data string) error { return os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o644) }

// Allow allows connections from loopback addresses, with the password.
func Allow(data string) error {
	const lines = "host all all 127.0.0.0/8 scram-sha-256\nhost replication all 127.0.0.0/8 scram-sha-256\n"
	return os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(lines), 0o600)
}

// User is the user that servers run as, which refuse to run as root. nil: this program's.
func User() (*child.User, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(found.Uid)
		gid, err2 := strconv.Atoi(found.Gid)
		return &child.User{UID: uid, GID: gid}, errors.Join(err, err2)
	}
	return nil, fmt.Errorf("%w: PostgreSQL refuses to run as root, and there is no user postgres or nobody",
		cluster.ErrEnvironment)
}

// RemoveInterlock removes the piece of shared memory by which a server recognizes another one that still runs on its
// data, and which outlives a killed server. Its number is in the file of the process number.
func RemoveInterlock(data string) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
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
