// Command run builds the site of the project with Sphinx, and checks its links.
//
//	go run ./internal/site/run -sphinx VENV/bin/sphinx-build      run from the root of the repository, by scripts/site
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/lockchaos/lockchaos/internal/site"
)

func main() {
	sphinx := flag.String("sphinx", "sphinx-build", "the generator of the pages")
	chaos := flag.String("chaos", "bin/chaos", "the program chaos")
	out := flag.String("out", "dist/site", "directory of the site, which is emptied first")
	flag.Parse()
	if err := build(*sphinx, *chaos, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func build(sphinx, chaos, out string) (err error) {
	begin := time.Now()
	work, err := os.MkdirTemp("", "lockchaos-site-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	o := site.Options{Root: ".", Chaos: chaos, Pages: filepath.Join(work, "pages"), Extra: filepath.Join(work, "extra")}
	if err := o.Write(); err != nil {
		return err
	}
	written := time.Since(begin)
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	cmd := exec.Command(sphinx, "--quiet", "--nitpicky", "--fail-on-warning", "--keep-going", "--jobs", "auto",
		"-c", "internal/site/sphinx", "-d", filepath.Join(work, "doctrees"), "-D", "html_extra_path="+o.Extra, o.Pages, out)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building the pages: %w", err)
	}
	built := time.Since(begin)
	if err := site.Check(out); err != nil {
		return fmt.Errorf("dead links, or requests to other hosts:\n%w", err)
	}
	fmt.Printf("%s: sources %.1f s, pages %.1f s, links %.1f s\n", filepath.Join(out, "index.html"), written.Seconds(),
		(built - written).Seconds(), (time.Since(begin) - built).Seconds())
	return nil
}
