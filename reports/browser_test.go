package reports

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// browser is a chromium with args and its own profile. It has minutes, because a
// browser is slow on a busy machine. Its child processes may outlive it and write
// to the profile, so they are killed before the profile is removed.
func browser(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: no chromium on the PATH (Debian, Ubuntu: apt-get install chromium)")
	}
	profile, err := os.MkdirTemp("", "lockchaos-browser-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	cmd := exec.CommandContext(ctx, program, append([]string{"--headless", "--no-sandbox", "--disable-gpu",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-default-apps", "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + profile}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Minute
	t.Cleanup(func() {
		cancel()
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		for end := time.Now().Add(20 * time.Second); os.RemoveAll(profile) != nil; {
			if time.Now().After(end) {
				t.Errorf("%s cannot be removed", profile)
				return
			}
		}
	})
	return cmd
}
