package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

// finding is one ability of this machine.
type finding struct {
	Ability string `json:"ability"`
	OK      bool   `json:"ok"`
	Needed  bool   `json:"needed"` // without it no scenario runs here
	Detail  string `json:"detail"` // what was found
	For     string `json:"for"`    // what it is good for
	Mend    string `json:"mend"`   // how to get it
}

func newDoctor(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "say what this machine can and cannot do, and how to mend it",
		Long: `Tries out each ability that scenarios need and says what it is for and how to get it.
Exit code 0 if scenarios can run here, 69 if not.`,
		Example: "  chaos doctor\n  chaos doctor --json",
		Args:    exactly(0, "no arguments"),
		RunE:    func(c *cobra.Command, _ []string) error { return doctor(c.Context(), s, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print as a JSON array")
	return c
}

func doctor(ctx context.Context, s streams, asJSON bool) error {
	findings := examine(ctx)
	if asJSON {
		if err := s.json(findings); err != nil {
			return err
		}
	} else {
		printFindings(s, findings)
	}
	for _, f := range findings {
		if f.Needed && !f.OK {
			return &codeError{code: exitEnvironment}
		}
	}
	return nil
}

func printFindings(s streams, findings []finding) {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		mark := "ok"
		switch {
		case !f.OK && f.Needed:
			mark = "MISSING"
		case !f.OK:
			mark = "no"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", mark, f.Ability, f.Detail)
		if !f.OK {
			fmt.Fprintf(w, "\t\tfor: %s; get it: %s\n", f.For, f.Mend)
		}
	}
	_ = w.Flush()
}

func examine(ctx context.Context) []finding {
	return []finding{
		redisFound(ctx), linuxFound(), loopbackFound(), tempFound(),
		clocksFound(), faketimeFound(), disksFound(), namespacesFound(), dockerFound(ctx), chromiumFound(),
	}
}

func redisFound(ctx context.Context) finding {
	f := finding{
		Ability: "redis-server", Needed: true, For: "backend process: every scenario on real servers, Sentinel included",
		Mend: "Debian, Ubuntu: apt-get install redis-server; Fedora: dnf install redis",
	}
	version, err := process.Version(ctx, "")
	f.OK = err == nil
	f.Detail = "version " + version
	if err != nil {
		f.Detail = err.Error()
	}
	return f
}

func linuxFound() finding {
	return finding{
		Ability: "Linux", OK: runtime.GOOS == "linux", Needed: true, Detail: runtime.GOOS + "/" + runtime.GOARCH,
		For:  "stopping processes with proof, ending them when chaos dies, addresses of their own on loopback",
		Mend: "run in a Linux machine or container",
	}
}

// loopbackFound tries the addresses by which gates tell callers apart.
func loopbackFound() finding {
	f := finding{
		Ability: "loopback addresses", OK: true, Needed: true, Detail: "127.0.1.1 to 127.0.5.1 can be bound",
		For:  "telling clients, servers and Sentinels apart at the gates",
		Mend: "ip addr add 127.0.1.1/8 dev lo (Linux has all of 127.0.0.0/8 by default)",
	}
	for i := 1; i <= 5; i++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.%d.1:0", i))
		if err != nil {
			f.OK, f.Detail = false, err.Error()
			return f
		}
		_ = l.Close()
	}
	return f
}

func tempFound() finding {
	f := finding{
		Ability: "temporary folder", OK: true, Needed: true, Detail: os.TempDir() + " can be written",
		For: "the servers' data and the ledger of what a run has started", Mend: "set TMPDIR to a folder that can be written",
	}
	dir, err := os.MkdirTemp("", "lockchaos-doctor-")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "x"), []byte("x"), 0o600)
		_ = os.RemoveAll(dir)
	}
	if err != nil {
		f.OK, f.Detail = false, err.Error()
	}
	return f
}

func chromiumFound() finding {
	f := finding{
		Ability: "Chromium", For: "this project's own tests of the report page; reading a report needs any browser",
		Mend: "Debian, Ubuntu: apt-get install chromium",
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			f.OK, f.Detail = true, path
			return f
		}
	}
	f.Detail = "not on the PATH"
	return f
}
