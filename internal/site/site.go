// Package site writes the sources of the project's site, and checks what is built from them: the pages of docs, and
// generated ones about scenarios, libraries, catalogs and commands, as Markdown for Sphinx. The site has no content of
// its own besides its home page and the reports that are made for its gallery.
//
// Read [Options.Write] first, then [Check].
package site

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// repository is the address to which links to files outside of the site lead.
const repository = "https://github.com/lockchaos/lockchaos"

// Options name the inputs of the site, and the directories to which its sources are written.
type Options struct {
	Root  string // of the repository
	Chaos string // the program
	Pages string // directory of the pages, which is emptied first
	Extra string // directory of the files that are copied as they are, which is emptied first
}

// Write writes the pages and the other files of the site.
func (o Options) Write() error {
	for _, dir := range []string{o.Pages, o.Extra} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	steps := []func() error{o.copyDocs, o.sections, o.gallery, o.stories, o.libraries, o.catalogs, o.commands}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// page writes a page; name is its path without .md.
func (o Options) page(name, text string) error {
	return write(filepath.Join(o.Pages, name+".md"), text)
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.TrimRight(text, "\n")+"\n"), 0o644)
}

// output is the text that the program prints to standard output.
func (o Options) output(args ...string) ([]byte, error) {
	text, err := exec.Command(o.Chaos, args...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", o.Chaos, strings.Join(args, " "), err)
	}
	return text, nil
}

// contents is a table of contents in the navigation, which the page itself does not show.
func contents(pages ...string) string {
	return "\n```{toctree}\n:hidden:\n\n" + strings.Join(pages, "\n") + "\n```\n"
}

// command is a command line that a reader can copy.
func command(line string) string { return "\n```console\n" + line + "\n```\n" }

// cell is a text, in which backquotes mark code, as a cell of a table or a part of a paragraph.
func cell(text string) string {
	parts := strings.Split(text, "`")
	if len(parts)%2 == 0 { // a backquote without a second one
		return plain(text)
	}
	for i := range parts {
		if i%2 == 0 {
			parts[i] = plain(parts[i])
		} else {
			parts[i] = strings.ReplaceAll(parts[i], "|", `\|`)
		}
	}
	return strings.Join(parts, "`")
}

// plain is a text in which nothing is markup.
func plain(text string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`, "]", `\]`, "{", `\{`,
		"$", `\$`, "`", "\\`", "\n", " ").Replace(text)
}
