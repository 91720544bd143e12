//go:build unix

package serve

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/suite"
)

// TestNamedPipe: a named pipe below the root, of any name that is looked for, does not keep a request waiting.
func TestNamedPipe(t *testing.T) {
	for _, name := range []string{"pipe.html", "index.html", suite.ProgressFile} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "report.html"), "page")
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Skipf("NOT RUN: no named pipe can be made: %v", err)
		}
		h, done := handler(t, dir), make(chan struct{})
		go func() {
			defer close(done)
			for path, want := range map[string]int{"/" + name: 404, "/": 200, "/report.html": 200} {
				if path == "/index.html" {
					want = 301
				}
				if w := get(h, "GET", path, "localhost"); w.Code != want {
					t.Errorf("%s, asked for %s: %d, want %d", name, path, w.Code, want)
				}
			}
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("a request waits for %s", name)
		}
	}
}
