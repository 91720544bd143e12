// Package machine finds the features of this machine that scenarios need, with their uses and the ways to add missing
// ones.
//
// Read [Diagnose] first.
package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"github.com/lockchaos/lockchaos/internal/cluster/installed"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

// Diagnosis is the result of one check of this machine.
type Diagnosis struct {
	Feature  string `json:"feature"`
	OK       bool   `json:"ok"`
	Required bool   `json:"required"` // by every scenario on real servers
	Detail   string `json:"detail"`   // the result: a version or a path, or the reason why it failed
	UsedFor  string `json:"used_for"`
	Fix      string `json:"fix"` // the way to add it
}

// feature is a check of this machine.
type feature struct {
	name    string
	usedFor string
	fix     string
	check   func(context.Context) (found string, err error)
}

// Diagnose checks every feature: first the ones that all scenarios on real servers require.
func Diagnose(ctx context.Context) (all []Diagnosis) {
	required := requiredFeatures()
	for i, f := range append(required, otherFeatures()...) {
		found, err := f.check(ctx)
		if err != nil {
			found = err.Error()
		}
		all = append(all, Diagnosis{f.name, err == nil, i < len(required), found, f.usedFor, f.fix})
	}
	return all
}

func requiredFeatures() []feature {
	return []feature{{
		"redis-server", "backend process: every scenario on real servers and Sentinels",
		"Debian, Ubuntu: apt-get install redis-server; Fedora: dnf install redis",
		func(ctx context.Context) (string, error) { return versioned(process.Version(ctx, "")) },
	}, {
		"Linux",
		"verifying that a process is stopped, killing children when chaos dies, one loopback address per server",
		"use a Linux machine or container", checkLinux,
	}, {
		"loopback addresses", "identifying clients, servers and Sentinels by their address",
		"ip addr add 127.0.1.1/8 dev lo (the default on Linux)", checkLoopback,
	}, {
		"temporary directory", "data of the servers, and the ledger of what a run has started",
		"set TMPDIR to a writable directory", checkTemp,
	}}
}

// versioned is a program with its version.
func versioned(version string, err error) (string, error) { return "version " + version, err }

// installedVersion is the version of installed software.
func installedVersion(s installed.Software, err error) (string, error) {
	return versioned(s.Version, err)
}

// lacking returns the missing part as an error, or else the found one.
func lacking(missing, found string) (string, error) {
	if missing != "" {
		return "", errors.New(missing)
	}
	return found, nil
}

func checkLinux(context.Context) (string, error) {
	system := runtime.GOOS + "/" + runtime.GOARCH
	if runtime.GOOS != "linux" {
		return "", errors.New(system)
	}
	return system, nil
}

// checkLoopback binds the addresses by which gates identify their callers.
func checkLoopback(context.Context) (string, error) {
	for i := 1; i <= 5; i++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.%d.1:0", i))
		if err != nil {
			return "", err
		}
		_ = l.Close()
	}
	return "127.0.1.1 to 127.0.5.1 can be bound", nil
}

func checkTemp(context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "lockchaos-doctor-")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "x"), []byte("x"), 0o600)
		_ = os.RemoveAll(dir)
	}
	return os.TempDir() + " is writable", err
}
