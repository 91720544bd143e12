package adapters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/filelock"
)

// dirVariable names the directory in which adapters are built.
const dirVariable = "LOCKCHAOS_ADAPTERS"

// builtFile marks a build directory that is complete.
const builtFile = ".built"

// sharedDir has files that several adapters are built with.
const sharedDir = "protocol"

// moduleFile is the go.mod of an adapter in Go, under another name: a go.mod would make its directory a module of its
// own, which cannot be embedded.
const moduleFile = "go.mod.txt"

// ErrNotBuilt: the adapter has to be built first.
var ErrNotBuilt = errors.New("not built")

// Dir returns the directory in which the adapter is built: in $LOCKCHAOS_ADAPTERS or the user's cache directory, with
// the version and a hash of the sources in its name. The error says that the user has no cache directory.
func (a Adapter) Dir() (string, error) {
	base := os.Getenv(dirVariable)
	if base == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no directory for adapters (set %s): %w", dirVariable, err)
		}
		base = filepath.Join(cache, "lockchaos", "adapters")
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = a.sources(func(name string, text []byte) error {
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		return nil
	})
	return filepath.Join(base, a.Library+"-"+a.Version+"-"+hex.EncodeToString(sum.Sum(nil))[:12]), err
}

// sources calls visit with each file that the adapter is built from.
func (a Adapter) sources(visit func(name string, text []byte) error) error {
	names, err := fs.Glob(files, a.Library+"/*")
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains([]string{"README.md", expectFile}, path.Base(name))
	})
	for _, name := range a.Shared {
		names = append(names, path.Join(sharedDir, name))
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if err := visit(strings.Replace(path.Base(name), moduleFile, "go.mod", 1), text); err != nil {
			return err
		}
	}
	return nil
}

// Ready returns nil if the adapter was built, and otherwise an [ErrNotBuilt] that says how to build it.
func (a Adapter) Ready() error {
	dir, err := a.Dir()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, builtFile)); err != nil {
		return fmt.Errorf("%s %s is %w: run `chaos adapters build %s`", a.Library, a.Version, ErrNotBuilt, a.Library)
	}
	return nil
}

// Ready returns nil unless lock belongs to an adapter that has not been built, see [Adapter.Ready].
func Ready(lock string) error {
	library, _, isAdapter := cutName(lock)
	if !isAdapter {
		return nil
	}
	a, err := Find(library)
	if err != nil {
		return err
	}
	return a.Ready()
}

// Missing returns the programs that the adapter needs and that are not on the PATH.
func (a Adapter) Missing() (programs []string) {
	for _, program := range a.Needs {
		if _, err := exec.LookPath(program); err != nil {
			programs = append(programs, program)
		}
	}
	return programs
}

// Make builds the adapter, unless it is built, and writes the output of its commands to log. Builds of one adapter by
// several processes wait for each other. An error names the command that failed.
func (a Adapter) Make(ctx context.Context, log io.Writer) error {
	dir, err := a.Dir()
	if err != nil {
		return err
	}
	if missing := a.Missing(); len(missing) > 0 {
		return fmt.Errorf("building %s needs %s on the PATH", a.Library, strings.Join(missing, ", "))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // releases the lock
	if err := filelock.Wait(lock); err != nil {
		return fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	if a.Ready() == nil {
		return nil
	}
	err = a.sources(func(name string, text []byte) error {
		return os.WriteFile(filepath.Join(dir, name), text, 0o644)
	})
	if err != nil {
		return err
	}
	for _, command := range a.Build {
		words := expand(command, dir, "")
		c := exec.CommandContext(ctx, words[0], words[1:]...)
		c.Dir, c.Stdout, c.Stderr = dir, log, log
		c.Env = append(os.Environ(), pinned()...)
		if err := c.Run(); err != nil {
			return fmt.Errorf("building %s: %s: %w", a.Library, strings.Join(command, " "), err)
		}
	}
	return os.WriteFile(filepath.Join(dir, builtFile), nil, 0o644)
}

// pinned is the environment of a build: it depends neither on the workspace nor on the flags of the directory in which
// it is started, and takes no module without a checksum in go.sum.
func pinned() []string {
	return []string{"GOFLAGS=-mod=readonly", "GOWORK=off", "PIP_DISABLE_PIP_VERSION_CHECK=1"}
}
