// Package database has what the servers of SQL databases share: the place of a server, the user that it runs as, and
// the tools that make a new database. It is no client. Read [Kind] first.
package database

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

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Kind is the software of a database.
type Kind interface {
	// Users are the users that servers run as if this program runs as root, the best one first.
	Users() []string
	// Config is the configuration file of a server.
	Config(s Server) string
	// Prepare is called before each start of a server. It gives it its files and, where its disk is empty, a database,
	// which tools make. It returns the arguments of the program.
	Prepare(s Server, run func(tool child.Spec) error) (args []string, err error)
}

// Server is one server: its paths, its address, and the options of its start.
type Server struct {
	Program  string         // path
	Run, Dir string         // directories of the run and of the server, which only this program's user can list
	Disk     string         // directory below Dir for its data
	Conf     string         // its configuration file, below Dir
	At       netip.AddrPort // it listens there
	Primary  netip.AddrPort // that it follows; invalid: it is no standby
	Options  map[string]string
	Password string      // of the clients' user
	User     *child.User // that it runs as; nil: this program's
}

// Data is the directory of its database.
func (s Server) Data() string { return filepath.Join(s.Disk, "data") }

// Hand makes the server's user the owner of files in the directory of the run.
func (s Server) Hand(paths ...string) error {
	if s.User == nil {
		return nil
	}
	errs := []error{os.Chmod(s.Run, 0o711)}
	for _, path := range paths {
		errs = append(errs, os.Chown(path, s.User.UID, s.User.GID))
	}
	return errors.Join(errs...)
}

// Secret writes a file that only the server's user can read.
func (s Server) Secret(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return s.Hand(path)
}

// Lines are the lines of a configuration file, one for each setting, sorted.
func Lines(settings map[string]string, format string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, format, name, settings[name])
	}
	return b.String()
}

// User is the first of these users of this machine. nil: servers run as this program's, which is not root.
func User(names []string) (*child.User, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range names {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(found.Uid)
		gid, err2 := strconv.Atoi(found.Gid)
		return &child.User{UID: uid, GID: gid}, errors.Join(err, err2)
	}
	return nil, fmt.Errorf("%w: the server refuses to run as root, and there is no user %s",
		cluster.ErrEnvironment, strings.Join(names, " or "))
}
