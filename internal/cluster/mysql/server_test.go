package mysql

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster/database"
)

// place is a server that nothing has started yet.
func place(t *testing.T) database.Server {
	t.Helper()
	dir := t.TempDir()
	s := database.Server{
		Program: "/opt/sql/bin/mysqld", Run: dir, Dir: dir, Disk: filepath.Join(dir, "disk"),
		Conf: filepath.Join(dir, "server.conf"), At: netip.MustParseAddrPort("127.0.1.1:7000"), Password: "secret",
	}
	if err := os.Mkdir(s.Disk, 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestConfig: options replace defaults, but not what belongs to the harness, and no password is in it.
func TestConfig(t *testing.T) {
	s := place(t)
	s.Options = map[string]string{"max_connections": "10", "port": "1", "bind_address": "0.0.0.0"}
	text := Kind{}.Config(s)
	for _, line := range []string{"max_connections = 10", "port = 7000", "bind_address = 127.0.1.1", "socket = "} {
		if strings.Count(text, "\n"+line+"\n") != 1 {
			t.Errorf("no line %q, or several, in\n%s", line, text)
		}
	}
	if strings.Contains(text, s.Password) {
		t.Errorf("the password is in\n%s", text)
	}
}

// TestPrepare: the program of the installation makes a database where none was made completely, and no command line
// has the password.
func TestPrepare(t *testing.T) {
	for _, installer := range []string{"", "/opt/sql/scripts/mariadb-install-db"} {
		s := place(t)
		var tools []child.Spec
		fails := errors.New("the disk is full")
		prepare := func() error {
			args, err := Kind{installer}.Prepare(s, func(tool child.Spec) error {
				tools = append(tools, tool)
				if err := os.Mkdir(s.Data(), 0o700); err != nil {
					t.Error(err)
				}
				return fails
			})
			if err == nil && !slices.Equal(args, []string{"--defaults-file=" + s.Conf}) {
				t.Errorf("arguments of the server: %q", args)
			}
			return err
		}
		if err := os.WriteFile(s.Conf, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := prepare(); !errors.Is(err, fails) {
			t.Errorf("the tool fails: %v", err)
		}
		fails = nil
		for range 2 { // the second time, there is a database
			if err := prepare(); err != nil {
				t.Error(err)
			}
		}
		if len(tools) != 2 {
			t.Fatalf("%d tools ran, want 2", len(tools))
		}
		want := installer
		if want == "" {
			want = s.Program
		}
		for _, tool := range tools {
			line := strings.Join(append(slices.Clone(tool.Args), tool.Env...), " ")
			if tool.Path != want || strings.Contains(line, s.Password) ||
				strings.Contains(line, "--initialize-insecure") != (installer == "") {
				t.Errorf("tool %s %s", tool.Path, line)
			}
		}
		text, err := os.ReadFile(startFile(s))
		info, err2 := os.Stat(startFile(s))
		if err != nil || err2 != nil || info.Mode().Perm() != 0o600 || !strings.Contains(string(text), s.Password) {
			t.Errorf("the statements of the start: %q, %v, %v", text, err, err2)
		}
	}
}
