package serve

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/suite"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func handler(t *testing.T, dir string) http.Handler {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return Handler(root)
}

func get(h http.Handler, method, target, host string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost/", nil)
	r.URL.Path, r.Host = target, host // as a client may write it, not cleaned
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestNothingOutside: neither a path nor a symbolic link leaves the directory.
func TestNothingOutside(t *testing.T) {
	top := t.TempDir()
	write(t, filepath.Join(top, "secret"), "secret")
	dir := filepath.Join(top, "suite")
	write(t, filepath.Join(dir, "runs", "a", "report.html"), "<p>report")
	for link, to := range map[string]string{"latest": "runs/a", "out": "../secret", "root": "/etc/passwd"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	h := handler(t, dir)
	if w := get(h, "GET", "/latest/report.html", "localhost:8080"); w.Code != 200 || w.Body.String() != "<p>report" {
		t.Errorf("a report: %d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/../secret", "/runs/../../secret", "/out", "/root", "/..%2fsecret", "/./../secret",
		"//../secret", "/runs/a/../../../secret/", "/out/"} {
		if w := get(h, "GET", path, "127.0.0.1"); w.Code == 200 || strings.Contains(w.Body.String(), "secret\n") ||
			w.Body.String() == "secret" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/out", "/root"} {
		if w := get(h, "GET", path, "127.0.0.1"); w.Code != 404 {
			t.Errorf("a link out of the directory, %s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestOnlyLoopback: other host names, methods and addresses are refused, and every reply has the policy.
func TestOnlyLoopback(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "index.html"), "page")
	h := handler(t, dir)
	for _, row := range []struct {
		method, host string
		code         int
	}{
		{"GET", "localhost:1", 200}, {"HEAD", "[::1]:1", 200}, {"GET", "127.0.0.1", 200}, {"GET", "evil.example:80", 403},
		{"GET", "10.0.0.1:80", 403}, {"GET", "", 403}, {"POST", "localhost", 405}, {"DELETE", "localhost", 405},
	} {
		w := get(h, row.method, "/", row.host)
		if w.Code != row.code || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s of %q: %d, want %d; %v", row.method, row.host, w.Code, row.code, w.Header())
		}
	}
	for _, addr := range []string{"0.0.0.0:0", ":0", "10.1.2.3:0", "example.com:80"} {
		if l, err := Listen(addr); !errors.Is(err, ErrNotLoopback) {
			l.Close()
			t.Errorf("listening on %s: %v", addr, err)
		}
	}
}

// TestLive: a suite that is running has a page that refreshes itself; when it has ended, its own page is served.
func TestLive(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "night", "index.html"), "the end")
	progress := suite.Progress{Total: 7, Updated: time.Now(), Suite: suite.Suite{
		Rows: []suite.Row{{Scenario: "<failover>", Outcome: suite.AsExpected, Verdict: "unsafe"}},
	}}
	text, err := json.Marshal(progress)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "night", suite.ProgressFile)
	write(t, file, string(text))
	h := handler(t, dir)
	w := get(h, "GET", "/night/", "localhost")
	if body := w.Body.String(); !strings.Contains(body, "1 of 7 done") || !strings.Contains(body, "&lt;failover&gt;") ||
		w.Header().Get("Refresh") != refresh {
		t.Errorf("running: %v %s", w.Header(), body)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if w := get(h, "GET", "/night/", "localhost"); w.Body.String() != "the end" || w.Header().Get("Refresh") != "" {
		t.Errorf("ended: %v %s", w.Header(), w.Body)
	}
}

// TestNoContentIsSniffed: the type of a file follows from its name, and a script that is not a report's does not run.
func TestNoContentIsSniffed(t *testing.T) {
	dir := t.TempDir()
	const page = "<!DOCTYPE html><html><script>steal()</script>"
	for name, want := range map[string]string{
		"report.html": "text/html; charset=utf-8", "run.json": "application/json", "plot.svg": "image/svg+xml",
		"plot.png": "image/png", "client-0.log": "text/plain; charset=utf-8", "junit.xml": "text/plain; charset=utf-8",
		"history.jsonl": "text/plain; charset=utf-8", "page.js": "text/plain; charset=utf-8",
		"none": "text/plain; charset=utf-8",
	} {
		write(t, filepath.Join(dir, name), page)
		w := get(handler(t, dir), "GET", "/"+name, "localhost")
		h := w.Header()
		if w.Code != 200 || h.Get("Content-Type") != want || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v, want %s", name, w.Code, h, want)
		}
		if policy := h.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'none';") {
			t.Errorf("%s: %s", name, policy)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	w := get(Handler(root, "sha256-one", "sha256-two"), "GET", "/report.html", "localhost")
	policy := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "script-src 'sha256-one' 'sha256-two';") ||
		strings.Contains(policy, "script-src 'unsafe-inline'") {
		t.Error(policy)
	}
}
