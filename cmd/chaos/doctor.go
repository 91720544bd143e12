package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
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

func diagnose(ctx context.Context) []diagnosis {
	return []diagnosis{
		checkRedis(ctx), checkLinux(), checkLoopback(), checkTemp(),
		checkClocks(), checkFaketime(), checkDisks(), checkZooKeeper(), checkEtcd(ctx),
		checkNamespaces(), checkDocker(ctx), checkChromium(),
	}
}

func checkRedis(ctx context.Context) diagnosis {
	d := diagnosis{
		Feature: "redis-server", Required: true, UsedFor: "backend process: every scenario on real servers and Sentinels",
		Fix: "Debian, Ubuntu: apt-get install redis-server; Fedora: dnf install redis",
	}
	version, err := process.Version(ctx, "")
	return d.result(err, "version "+version)
}

func checkLinux() diagnosis {
	return diagnosis{
		Feature: "Linux", OK: runtime.GOOS == "linux", Required: true, Detail: runtime.GOOS + "/" + runtime.GOARCH,
		UsedFor: "verifying that a process is stopped, killing children when chaos dies, one loopback address per server",
		Fix:     "use a Linux machine or container",
	}
}

// checkLoopback binds the addresses by which gates identify their callers.
func checkLoopback() diagnosis {
	d := diagnosis{
		Feature: "loopback addresses", Required: true,
		UsedFor: "identifying clients, servers and Sentinels by their address",
		Fix:     "ip addr add 127.0.1.1/8 dev lo (the default on Linux)",
	}
	for i := 1; i <= 5; i++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.%d.1:0", i))
		if err != nil {
			return d.result(err, "")
		}
		_ = l.Close()
	}
	return d.result(nil, "127.0.1.1 to 127.0.5.1 can be bound")
}

func checkTemp() diagnosis {
	d := diagnosis{
		Feature: "temporary directory", Required: true,
		UsedFor: "data of the servers, and the ledger of what a run has started",
		Fix:     "set TMPDIR to a writable directory",
	}
	dir, err := os.MkdirTemp("", "lockchaos-doctor-")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "x"), []byte("x"), 0o600)
		_ = os.RemoveAll(dir)
	}
	return d.result(err, os.TempDir()+" is writable")
}

func checkChromium() diagnosis {
	d := diagnosis{
		Feature: "Chromium", UsedFor: "this project's tests of the report page; any browser can show a report",
		Fix: "Debian, Ubuntu: apt-get install chromium", Detail: "not on the PATH",
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return d.result(nil, path)
		}
	}
	return d
}

// result completes a diagnosis: with the error if there is one, else with what was found.
func (d diagnosis) result(err error, found string) diagnosis {
	d.OK, d.Detail = err == nil, found
	if err != nil {
		d.Detail = err.Error()
	}
	return d
}
