package reports

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAccessibility: axe-core 4.14.1 (Deque Systems, MPL-2.0; unmodified, from npm) finds nothing on the pages of
// four runs, light and dark, in a browser.
func TestAccessibility(t *testing.T) {
	axe := readGzip(t, "testdata/axe.min.js.gz")
	bad := axeFinds(t, `<html lang="en"><title>x</title><body><main><h1>x</h1><img src="x"></main></body></html>`, axe, false)
	if len(bad) != 1 || bad[0].ID != "image-alt" {
		t.Fatalf("axe-core found %+v in an image without text, want image-alt", bad)
	}
	for _, s := range allRuns() {
		page := render(t, s.load(t), "html")
		for _, dark := range []bool{false, true} {
			name := fmt.Sprintf("%s dark=%v", s.m.Scenario, dark)
			t.Run(name, func(t *testing.T) {
				for _, v := range axeFinds(t, page, axe, dark) {
					t.Errorf("%s: %s: %s", v.ID, v.Help, strings.Join(v.where(), "; "))
				}
			})
		}
	}
}

func readGzip(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// axeViolation is what axe-core reports.
type axeViolation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML string `json:"html"`
	} `json:"nodes"`
}

func (v axeViolation) where() []string {
	var all []string
	for _, n := range v.Nodes[:min(len(v.Nodes), 3)] {
		all = append(all, n.HTML)
	}
	return all
}

// axeFinds opens the page with axe-core in it, which its content security policy would forbid.
func axeFinds(t *testing.T, page, axe string, dark bool) []axeViolation {
	t.Helper()
	policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`)
	page = policy.ReplaceAllString(page, "")
	page = strings.Replace(page, "</body>", "<script>"+strings.ReplaceAll(axe, "</script", `<\/script`)+"</script>"+
		`<script>axe.run().then(function (r) { var p = document.createElement('pre'); p.id = 'axe';
		p.textContent = JSON.stringify(r.violations); document.body.append(p); })</script></body>`, 1)
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	scheme := "--blink-settings=preferredColorScheme=1"
	if dark {
		scheme = "--blink-settings=preferredColorScheme=0"
	}
	cmd := browser(t, scheme, "--virtual-time-budget=20000", "--dump-dom", "file://"+path)
	var dom, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &dom, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("opening the page: %v\n%s", err, log.String())
	}
	found := regexp.MustCompile(`(?s)<pre id="axe">(.*?)</pre>`).FindStringSubmatch(dom.String())
	if found == nil {
		t.Fatalf("axe-core did not end: %s", log.String())
	}
	var all []axeViolation
	if err := json.Unmarshal([]byte(html.UnescapeString(found[1])), &all); err != nil {
		t.Fatal(err)
	}
	return all
}
