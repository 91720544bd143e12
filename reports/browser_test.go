package reports

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// browser is chromium, run for one page with args and a profile of its own. It
// has minutes, because a browser is the first to suffer on a busy machine.
// The processes that it leaves write to the profile after it has ended: they are
// killed with the test, before the profile is removed.
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
