package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/otlp"
)

// TestOTLP: the spans of a run reach a collector with the headers of the environment; a collector that refuses them, or
// is not there, does not change the verdict.
func TestOTLP(t *testing.T) {
	var got, path, token, kind string
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got, path, token, kind = string(body), r.URL.Path, r.Header.Get("Api-Key"), r.Header.Get("Content-Type")
		if strings.HasPrefix(path, "/full") {
			http.Error(w, "no space", http.StatusServiceUnavailable)
		}
	}))
	t.Setenv(otlp.Headers, "api-key=se%20cret,other=1")
	scenario := writeScenario(t, quickScenario)
	run := func(to string) (int, string) {
		got, path = "", ""
		code, _, stderr := chaos("run", "--scenario", scenario, "--backend", "sim", "--seed", "1", "--out", t.TempDir(),
			"--otlp", to)
		return code, stderr
	}
	code, stderr := run(collector.URL)
	if path != "/v1/traces" || token != "se cret" || kind != "application/json" || !json.Valid([]byte(got)) ||
		!strings.Contains(got, `"name":"acquire orders"`) || !strings.Contains(got, `"name":"fault pause-client`) {
		t.Errorf("%s %q %q: %s\n%s", path, token, kind, got, stderr)
	}
	if strings.Contains(stderr, "not exported") {
		t.Error(stderr)
	}
	for to, want := range map[string]string{
		collector.URL + "/full/v1/traces": "the spans were not exported: 503 Service Unavailable: no space",
		"http://127.0.0.1:1":              "the spans were not exported: ",
	} {
		again, stderr := run(to)
		if again != code || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, want %d\n%s", to, again, code, stderr)
		}
		if strings.Contains(stderr, "cret") {
			t.Errorf("%s: a header is printed: %s", to, stderr)
		}
	}
	collector.Close()
	for _, wrong := range []string{"localhost:4318", "ftp://x/", "http://", "%"} {
		if code, stderr := run(wrong); code != exitUsage || !strings.Contains(stderr, "--otlp") {
			t.Errorf("%s: exit code %d\n%s", wrong, code, stderr)
		}
	}
}
