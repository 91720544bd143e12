package site

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// document has the links of a page of the site, and the ids to which other links can lead.
type document struct {
	ids      map[string]bool
	links    []string // to other pages and to parts of this one
	requests []string // what a browser loads with the page
}

var styleURL = regexp.MustCompile(`url\(\s*["']?([^"')]+)`)

// Check reads the pages of a built site. Its error has every link and every request that leads to a missing file, every
// link to a missing part of a page, and every request to another host. Links to other sites are not followed.
func Check(dir string) error {
	pages := map[string]document{}
	var styles []string
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		switch path.Ext(name) {
		case ".html":
			pages[filepath.ToSlash(name)], err = read(file)
		case ".css":
			styles = append(styles, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(pages) == 0 {
		return fmt.Errorf("%s has no pages", dir)
	}
	var wrong []error
	for name, p := range pages {
		for _, target := range p.links {
			wrong = append(wrong, dead(dir, name, target, pages))
		}
		for _, target := range p.requests {
			wrong = append(wrong, refused(dir, name, target))
		}
	}
	for _, name := range styles {
		text, err := os.ReadFile(filepath.Join(dir, name))
		wrong = append(wrong, err)
		for _, m := range styleURL.FindAllStringSubmatch(string(text), -1) {
			wrong = append(wrong, refused(dir, name, m[1]))
		}
	}
	wrong = slices.DeleteFunc(wrong, func(err error) bool { return err == nil })
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(wrong...)
}

// read parses a page.
func read(file string) (document, error) {
	f, err := os.Open(file)
	if err != nil {
		return document{}, err
	}
	defer f.Close()
	root, err := html.Parse(f)
	if err != nil {
		return document{}, fmt.Errorf("%s: %w", file, err)
	}
	d := document{ids: map[string]bool{}}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			d.add(n)
		}
	}
	return d, nil
}

func (d *document) add(n *html.Node) {
	for _, a := range n.Attr {
		switch {
		case a.Key == "id", a.Key == "name" && n.Data == "a":
			d.ids[a.Val] = true
		case a.Key == "href" && n.Data == "a":
			d.links = append(d.links, a.Val)
		case a.Key == "href" && n.Data == "link":
			if rel := attribute(n, "rel"); strings.Contains(rel, "stylesheet") || strings.Contains(rel, "icon") {
				d.requests = append(d.requests, a.Val)
			} else {
				d.links = append(d.links, a.Val)
			}
		case a.Key == "src", a.Key == "action", a.Key == "data" && n.Data == "object":
			d.requests = append(d.requests, a.Val)
		case a.Key == "style":
			for _, m := range styleURL.FindAllStringSubmatch(a.Val, -1) {
				d.requests = append(d.requests, m[1])
			}
		}
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// dead is an error if a link of a page leads to nothing in the site.
func dead(dir, page, target string, pages map[string]document) error {
	u, err := url.Parse(target)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	if u.Scheme != "" && u.Scheme != "file" {
		return nil // to another site
	}
	if u.Host != "" || u.Scheme != "" || path.IsAbs(u.Path) {
		return fmt.Errorf("%s: %s is not relative", page, target)
	}
	to := page
	if u.Path != "" {
		to = path.Join(path.Dir(page), u.Path)
	}
	if info, err := os.Stat(filepath.Join(dir, to)); err != nil || info.IsDir() {
		return fmt.Errorf("%s: there is no page %s", page, target)
	}
	if p, isPage := pages[to]; isPage && u.Fragment != "" && !p.ids[u.Fragment] {
		return fmt.Errorf("%s: there is no part %s", page, target)
	}
	return nil
}

// refused is an error if a browser, with a page, loads something other than a file of the site.
func refused(dir, page, target string) error {
	if strings.HasPrefix(target, "data:") || strings.HasPrefix(target, "#") {
		return nil
	}
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", page, err)
	case u.Scheme != "" || u.Host != "" || path.IsAbs(u.Path):
		return fmt.Errorf("%s requests %s from elsewhere", page, target)
	}
	if !exists(filepath.Join(dir, path.Join(path.Dir(page), u.Path))) {
		return fmt.Errorf("%s: there is no %s", page, target)
	}
	return nil
}
