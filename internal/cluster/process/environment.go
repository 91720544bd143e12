package process

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Program is the server's name on the PATH.
const Program = "redis-server"

// oldestMajor is the first major version with bind-source-addr, which sets the address that a server connects from.
// Without that, gates cannot identify callers.
const oldestMajor = 7

// versionWait limits the time that redis-server --version may take. It usually takes milliseconds.
const versionWait = 5 * time.Second

// MissingError means that redis-server was not found. It wraps [cluster.ErrEnvironment].
type MissingError struct {
	Program string
	Err     error // of the search
}

// Error says how to install the program.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s not found (%v): install it (Debian, Ubuntu: apt-get install redis-server; "+
		"Fedora: dnf install redis; Alpine: apk add redis)", e.Program, e.Err)
}

// Unwrap returns the class and the cause of the error.
func (e *MissingError) Unwrap() []error { return []error{cluster.ErrEnvironment, e.Err} }

// Version returns the version of program, such as "7.0.15". An empty program is the redis-server on the PATH. The error
// is a [*MissingError] if it does not exist.
func Version(ctx context.Context, program string) (string, error) {
	_, version, err := findServer(ctx, program)
	return version, err
}

var versionWord = regexp.MustCompile(`\bv=((\d+)\.[0-9.]+)`)

// findServer finds the program and checks its version.
func findServer(ctx context.Context, program string) (path, version string, err error) {
	if program == "" {
		program = Program
	}
	path, err = exec.LookPath(program)
	if err != nil {
		return "", "", &MissingError{Program: program, Err: err}
	}
	out, err := printVersion(ctx, path)
	if err != nil {
		return "", "", fmt.Errorf("%s --version: %w: %w", path, cluster.ErrEnvironment, err)
	}
	words := versionWord.FindSubmatch(out)
	if words == nil {
		return "", "", fmt.Errorf("%s --version: %w: it prints %.60q", path, cluster.ErrEnvironment, out)
	}
	if major, err := strconv.Atoi(string(words[2])); err != nil || major < oldestMajor {
		return "", "", fmt.Errorf("%s is version %s: %w: version %d.0 or newer is needed",
			path, words[1], cluster.ErrEnvironment, oldestMajor)
	}
	return path, string(words[1]), nil
}

// printVersion returns the output of path --version. Its time is limited: the program may be another one of that name.
func printVersion(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second // for a child of its own that keeps the output open
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("no output within %v: %w", versionWait, ctx.Err())
	}
	return out, err
}

// version returns the version of a running server.
func (s *server) version(ctx context.Context) (string, error) {
	version, err := s.info(ctx, "server", "redis_version")
	if err == nil && version == "" {
		err = fmt.Errorf("reading the version of %s: %w: INFO has none", s.name, cluster.ErrEnvironment)
	}
	return version, err
}
