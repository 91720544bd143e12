package site

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/testkit/browser"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := browser.End(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// builtSite is the directory of a site that was built.
func builtSite(t *testing.T) string {
	t.Helper()
	dir := flag.Lookup("site").Value.String()
	if dir == "" {
		t.Skip("NOT RUN: it needs a built site: make site site-check")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var _ = flag.String("site", "", "directory of a built site, whose pages are opened in a browser")

// TestBuiltSiteIsAccessible: axe-core finds nothing on a page of each kind, light, dark and narrow, and the page
// requests nothing but files.
func TestBuiltSiteIsAccessible(t *testing.T) {
	dir := builtSite(t)
	d := browser.Start(t)
	for _, page := range []string{"index.html", "tutorials/own-lock.html", "gallery/index.html", "safe/index.html",
		"safe/redis-py.html", "stories/failover.html", "stories/clients/gc-pause.html", "reference/commands.html",
		"explanation/glossary.html", "search.html"} {
		for _, o := range []browser.Options{{}, {Dark: true}, {Width: 390}} {
			d.OpenFile(t, filepath.Join(dir, page), o)
			for _, v := range d.Violations(t) {
				t.Errorf("%s %+v: %s", page, o, v)
			}
			if elsewhere := slices.DeleteFunc(d.Loaded, isFile); len(elsewhere) > 0 {
				t.Errorf("%s requests %q", page, elsewhere)
			}
		}
	}
}

func isFile(url string) bool {
	return strings.HasPrefix(url, "file://") || strings.HasPrefix(url, "data:")
}

// TestBuiltSiteCanBeSearched: the search finds pages, opened as a file.
func TestBuiltSiteCanBeSearched(t *testing.T) {
	dir := builtSite(t)
	d := browser.Start(t)
	for query, want := range map[string]string{
		"gc-pause": "stories/clients/gc-pause.html", "watchdog": "reference/promises.html", "redsync": "safe/redsync.html",
	} {
		d.OpenFile(t, filepath.Join(dir, "search.html")+"?q="+query, browser.Options{})
		var found []string
		d.Run(t, `
			for (let frames = 0; frames < 1000 && !/found/i.test($('.search-summary')?.textContent); frames++) await frame();
			return [...document.querySelectorAll('.search li a')].map((a) =>
				a.getAttribute('href').replace(/[?#].*/, ''))`, &found)
		if !slices.Contains(found, want) {
			t.Errorf("%s: found %d pages %.5q, without %s", query, len(found), found, want)
		}
		if elsewhere := slices.DeleteFunc(d.Loaded, isFile); len(elsewhere) > 0 {
			t.Errorf("the search requests %q", elsewhere)
		}
	}
}

func TestMovedPagesKeepTheirLinks(t *testing.T) {
	o := Options{Root: "../.."}
	for _, test := range []struct{ from, to, text, want string }{
		{"docs/how-to/ci.md", "how-to/ci.md", "[a](test.md#in-ci) [b](https://redis.io) [c](#part)",
			"[a](../how-to/test.md#in-ci) [b](https://redis.io) [c](#part)"},
		{"docs/how-to/ci.md", "how-to/ci.md", "[a](../../action.yml) [b](../../examples)",
			"[a](" + repository + "/blob/main/action.yml) [b](" + repository + "/tree/main/examples)"},
		{"docs/README.md", "how-to/index.md", "[a](how-to/test.md) [b](design.md)",
			"[a](../how-to/test.md) [b](../design.md)"},
		{"docs/design.md", "design.md", "[a](README.md#how-to) [b](README.md)", "[a](how-to/index.md) [b](index.md)"},
		{"adapters/redisson/README.md", "safe/redisson.md", "[a](../../docs/how-to/adapters.md)",
			"[a](../how-to/adapters.md)"},
	} {
		got, err := o.moved(test.text, test.from, test.to)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s at %s: %v (-want +got):\n%s", test.from, test.to, err, diff)
		}
	}
	if _, err := o.moved("[a](gone.md)", "docs/design.md", "design.md"); err == nil {
		t.Error("no error for a link to nothing")
	}
}

func TestCellsAreText(t *testing.T) {
	for text, want := range map[string]string{
		"a|b *c* `d|e*` <f>": "a\\|b \\*c\\* `d\\|e*` \\<f>",
		"one ` backquote":    "one \\` backquote", "two\nlines": "two lines",
	} {
		if got := cell(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
