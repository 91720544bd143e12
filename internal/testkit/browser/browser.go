// Package browser opens pages in a browser, for tests: with its developer tools, or as a command. Read [Start] first.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

const noBrowser = "SKIPPED: no chromium on the PATH (Debian, Ubuntu: apt-get install chromium)"

// browserLimit is for how long a test may use a browser: minutes, because a browser is slow on a busy machine.
const browserLimit = 4 * time.Minute

// Command is a chromium with args and its own profile, which ends with the test.
func Command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), browserLimit)
	t.Cleanup(cancel)
	cmd, end, err := newBrowser(ctx, args...)
	if err != nil {
		t.Fatal(err)
	}
	if end == nil {
		t.Skip(noBrowser)
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return cmd
}

// newBrowser is a chromium that has not been started and is killed when ctx ends; without one on the PATH, end is nil.
// Its child processes may outlive it and write to the profile, so end kills them before it removes the profile.
func newBrowser(ctx context.Context, args ...string) (cmd *exec.Cmd, end func() error, err error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, nil
	}
	profile, err := os.MkdirTemp("", "lockchaos-browser-")
	if err != nil {
		return nil, nil, err
	}
	cmd = exec.CommandContext(ctx, program, append([]string{"--headless", "--no-sandbox", "--disable-gpu",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-default-apps", "--host-resolver-rules=MAP * ~NOTFOUND",
		"--renderer-process-limit=1", "--disable-site-isolation-trials", // a process of each page takes a tenth more CPU time
		"--user-data-dir=" + profile}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Minute
	return cmd, func() error {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		for end := time.Now().Add(20 * time.Second); os.RemoveAll(profile) != nil; {
			if time.Now().After(end) {
				return fmt.Errorf("%s cannot be removed", profile)
			}
		}
		return nil
	}, nil
}
