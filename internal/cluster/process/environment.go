package process

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Program is the server's name on the PATH.
const Program = "redis-server"

// oldest is the first major version that lets a server choose the address it
// connects from (bind-source-addr), without which gates cannot tell callers apart.
const oldest = 7

// versionWait is how long redis-server may take to say its version; it takes
// milliseconds.
const versionWait = 5 * time.Second

// MissingError says that there is no redis-server. It wraps [cluster.ErrEnvironment].
type MissingError struct {
	Program string // what was looked for
	Err     error  // what the search said
}

// Error says what is missing and how to get it.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not here (%v): install it (Debian, Ubuntu: apt-get install redis-server; "+
		"Fedora: dnf install redis; Alpine: apk add redis)", e.Program, e.Err)
}

// Unwrap gives the cause and the class of the error.
func (e *MissingError) Unwrap() []error { return []error{cluster.ErrEnvironment, e.Err} }

// Version is what redis-server (empty: the one on the PATH) calls itself, such as
// "7.0.15". The error is a [*MissingError] if there is none.
func Version(ctx context.Context, program string) (string, error) {
	_, version, err := find(ctx, program)
	return version, err
}

var versionWord = regexp.MustCompile(`\bv=((\d+)\.[0-9.]+)`)

// find looks for the program and makes sure that it can do what is needed.
func find(ctx context.Context, program string) (path, version string, err error) {
	if program == "" {
		program = Program
	}
	path, err = exec.LookPath(program)
	if err != nil {
		return "", "", &MissingError{Program: program, Err: err}
	}
	out, err := askVersion(ctx, path)
	if err != nil {
		return "", "", fmt.Errorf("asking %s for its version: %w: %w", path, cluster.ErrEnvironment, err)
	}
	words := versionWord.FindSubmatch(out)
	if words == nil {
		return "", "", fmt.Errorf("asking %s for its version: %w: it answers %q", path, cluster.ErrEnvironment,
			out[:min(len(out), 60)])
	}
	if major, err := strconv.Atoi(string(words[2])); err != nil || major < oldest {
		return "", "", fmt.Errorf("%s is version %s: %w: version %d.0 or newer is needed",
			path, words[1], cluster.ErrEnvironment, oldest)
	}
	return path, string(words[1]), nil
}

// askVersion is what path prints for --version. A program of that name that
// never ends is none of ours.
func askVersion(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second // for a child of its own that keeps the output open
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("no answer within %v: %w", versionWait, ctx.Err())
	}
	return out, err
}

// askVersion is what a running server calls itself.
func (s *server) askVersion(ctx context.Context) (string, error) {
	replies, err := s.admin.ask(ctx, []string{"INFO", "server"})
	if err != nil {
		return "", err
	}
	text, _ := replies[0].(string)
	_, rest, found := strings.Cut(text, "redis_version:")
	version, _, _ := strings.Cut(rest, "\r\n")
	if !found {
		return "", fmt.Errorf("asking %s for its version: %w: it answers %.60q", s.name, cluster.ErrEnvironment, text)
	}
	return version, nil
}
