package site

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckFindsDeadLinks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"index.html": `<link rel="stylesheet" href="a/site.css?v=1"><script src="a/x.js"></script><h1 id="top">x</h1>
			<a href="a/b.html#part">good</a><a href="https://redis.io">elsewhere</a><a href="#top">here</a>
			<a href="a/f.json">file</a>`,
		"a/b.html":   `<a name="part">x</a><a href="../index.html?q=1#top">good</a><img src="data:image/png;base64,x">`,
		"a/site.css": `p { background: url("pic.svg") }`,
		"a/x.js":     "", "a/f.json": "{}", "a/pic.svg": "<svg/>",
	} {
		if err := write(filepath.Join(dir, name), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := Check(dir); err != nil {
		t.Fatalf("a site without dead links: %v", err)
	}
	for text, want := range map[string]string{
		`<a href="gone.html">`:                             "no page gone.html",
		`<a href="a">`:                                     "no page a",
		`<a href="a/b.html#gone">`:                         "no part a/b.html#gone",
		`<a href="#gone">`:                                 "no part #gone",
		`<a href="/index.html">`:                           "/index.html is not relative",
		`<a href="//host/index.html">`:                     "//host/index.html is not relative",
		`<img src="gone.png">`:                             "no gone.png",
		`<script src="https://cdn.example/x.js">`:          "requests https://cdn.example/x.js from elsewhere",
		`<link rel="stylesheet" href="//font.example">`:    "requests //font.example from elsewhere",
		`<p style="background: url(https://x.example/y)">`: "requests https://x.example/y from elsewhere",
	} {
		if err := write(filepath.Join(dir, "wrong.html"), text); err != nil {
			t.Fatal(err)
		}
		if err := Check(dir); err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s: %v, want one error with %q", text, err, want)
		}
	}
	if err := Check(t.TempDir()); err == nil {
		t.Error("no error for a directory without pages")
	}
}
