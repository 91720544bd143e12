package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

// diagnosis is the result of one check of this machine.
type diagnosis struct {
	Feature  string `json:"feature"`
	OK       bool   `json:"ok"`
	Required bool   `json:"required"` // by every scenario on real servers
	Detail   string `json:"detail"`   // what was found
	UsedFor  string `json:"used_for"`
	Fix      string `json:"fix"` // how to get it
}

func newDoctor(s streams) *cobra.Command {
	var asJSON bool
	var lock string
	var initTimeout time.Duration
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine supports and how to add the rest",
		Long: `Checks each feature that scenarios need, and prints what it is used for and how to install it.
Exit code 0 if scenarios can run on real servers here, 69 if not.

With --lock it starts one server and two clients of that lock instead, and checks that they keep to the protocol:
source address, replies, refused requests, the outcome after a lost reply, close. Run it with a client of your own
before the first scenario. Exit code 0 if the clients keep to the protocol, 1 if not.`,
		Example: `  chaos doctor
  chaos doctor --lock 'exec:python3 client.py'
  chaos doctor --json`,
		Args: noArgs(""),
		RunE: func(c *cobra.Command, _ []string) error {
			if lock != "" {
				return doctorLock(c.Context(), s, lock, initTimeout, asJSON)
			}
			return doctor(c.Context(), s, asJSON)
		},
	}
	c.Flags().StringVar(&lock, "lock", "", "check the client of a lock: a name of chaos list locks, or exec:COMMAND")
	c.Flags().DurationVar(&initTimeout, "init-timeout", 0, "with --lock: how long to wait for the client's reply to init")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return c
}

func doctor(ctx context.Context, s streams, asJSON bool) error {
	all := diagnose(ctx)
	if asJSON {
		if err := s.json(all); err != nil {
			return err
		}
	} else {
		printDiagnoses(s, all)
	}
	for _, d := range all {
		if d.Required && !d.OK {
			return &codeError{code: exitEnvironment}
		}
	}
	return nil
}

func printDiagnoses(s streams, all []diagnosis) {
	w := s.table()
	for _, d := range all {
		mark := "ok"
		switch {
		case !d.OK && d.Required:
			mark = "MISSING"
		case !d.OK:
			mark = "no"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", mark, d.Feature, d.Detail)
		if !d.OK {
			fmt.Fprintf(w, "\t\tused for: %s\n\t\tto add it: %s\n", d.UsedFor, d.Fix)
		}
	}
	_ = w.Flush()
}

// feature is a check of this machine.
type feature struct {
	name    string
	usedFor string
	fix     string
	check   func(context.Context) (found string, err error)
}

// diagnose checks every feature: those that all scenarios on real servers require, then the others.
func diagnose(ctx context.Context) (all []diagnosis) {
	required := requiredFeatures()
	for i, f := range append(required, otherFeatures()...) {
		found, err := f.check(ctx)
		if err != nil {
			found = err.Error()
		}
		all = append(all, diagnosis{f.name, err == nil, i < len(required), found, f.usedFor, f.fix})
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

// lacking is what is missing as an error, or else what was found.
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
