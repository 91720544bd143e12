package site

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

var link = regexp.MustCompile(`\]\(([^)\s#]*)(#[^)\s]*)?\)`)

// copyDocs copies docs. Links to files outside of docs lead to the repository.
func (o Options) copyDocs() error {
	docs := filepath.Join(o.Root, "docs")
	return filepath.WalkDir(docs, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(docs, file)
		if err != nil || name == "README.md" { // its sections are pages of the site
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if filepath.Ext(name) != ".md" {
			return write(filepath.Join(o.Pages, name), string(text))
		}
		name = filepath.ToSlash(name)
		moved, err := o.moved(string(text), path.Join("docs", name), name)
		if err != nil {
			return err
		}
		return write(filepath.Join(o.Pages, name), moved)
	})
}

// moved is the text of a page of the repository with its links changed for the site. Links to files outside of docs
// lead to the repository.
func (o Options) moved(text, from, to string) (string, error) {
	var wrong error
	text = link.ReplaceAllStringFunc(text, func(found string) string {
		m := link.FindStringSubmatch(found)
		target, fragment := m[1], m[2]
		if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			return found
		}
		file := path.Join(path.Dir(from), target)
		info, err := os.Stat(filepath.Join(o.Root, file))
		if err != nil {
			wrong = fmt.Errorf("%s links to %s: %w", from, target, err)
			return found
		}
		below, isDoc := strings.CutPrefix(file, "docs/")
		switch {
		case file == "docs/README.md":
			return "](" + relative(to, sectionPage(fragment)) + ")"
		case isDoc && !info.IsDir():
			return "](" + relative(to, below) + fragment + ")"
		case info.IsDir():
			return "](" + repository + "/tree/main/" + file + ")"
		}
		return "](" + repository + "/blob/main/" + file + fragment + ")"
	})
	return text, wrong
}

// relative is the link from a page of the site to another.
func relative(from, to string) string { return strings.Repeat("../", strings.Count(from, "/")) + to }

// section is a part of docs/README.md that becomes a page of its own.
type section struct{ heading, folder string }

func docSections() []section {
	return []section{
		{"Start here", "tutorials"}, {"How-to", "how-to"}, {"Reference", "reference"}, {"Explanation", "explanation"},
		{"Contributors", "contributors"},
	}
}

// sectionPage is the page of a section of docs/README.md, named by the fragment of a link.
func sectionPage(fragment string) string {
	for _, s := range docSections() {
		if fragment == "#"+strings.ReplaceAll(strings.ToLower(s.heading), " ", "-") {
			return s.folder + "/index.md"
		}
	}
	return "index.md"
}

// sections writes a page for each section of docs/README.md, and the home page.
func (o Options) sections() error {
	text, err := os.ReadFile(filepath.Join(o.Root, "docs", "README.md"))
	if err != nil {
		return err
	}
	for _, s := range docSections() {
		_, body, found := strings.Cut(string(text), "\n## "+s.heading+"\n")
		if !found {
			return fmt.Errorf("docs/README.md has no section %q", s.heading)
		}
		body, _, _ = strings.Cut(body, "\n## ")
		name := s.folder + "/index"
		if body, err = o.moved(body, "docs/README.md", name+".md"); err != nil {
			return err
		}
		if s.folder == "reference" {
			body += generatedReference()
		}
		if err := o.page(name, "# "+s.heading+"\n"+body+contents(pagesOf(body, s.folder)...)); err != nil {
			return err
		}
	}
	home, err := os.ReadFile(filepath.Join(o.Root, "internal", "site", "sphinx", "index.txt"))
	if err != nil {
		return err
	}
	return o.page("index", string(home))
}

// pagesOf are the pages to which the section in that folder links: the pages of the folder itself, and the design,
// which is in no folder.
func pagesOf(body, folder string) (pages []string) {
	seen := map[string]bool{}
	for _, m := range link.FindAllStringSubmatch(body, -1) {
		target := strings.TrimPrefix(m[1], "../"+folder+"/")
		name, isPage := strings.CutSuffix(target, ".md")
		if isPage && !seen[name] && (!strings.Contains(name, "/") || name == "../design") {
			seen[name] = true
			pages = append(pages, name)
		}
	}
	return pages
}
