package examples

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// block is a fenced block of a tutorial.
var block = regexp.MustCompile("(?ms)^```(console|text)\n(.*?)^```$")

var (
	digits = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
	// written are files and directories in a checkout that commands write.
	written = regexp.MustCompile(`^(bin|dist|night.*|chaos-.*|broken\.py)$`)
	short   = regexp.MustCompile(`^(chaos (run|doctor)|sed) `)
	long    = regexp.MustCompile(`exec:(node|java|bin)`)
	exits   = regexp.MustCompile(` +# exits with ([0-9]+)$`)
)

// TestTutorials runs the commands of each tutorial in order, in a copy of the checkout. A block of text after them has
// lines of their output, in which numbers may differ. chaos test takes 20 s here, and may find that too short. A
// command whose program is missing is not run, nor is make, which installs programs. The short form runs chaos run and
// chaos doctor, with the client in Python.
func TestTutorials(t *testing.T) {
	root := tutorialRoot(t)
	pages, err := filepath.Glob("../docs/tutorials/*.md")
	if err != nil || len(pages) < 3 {
		t.Fatalf("%q, %v", pages, err)
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			output, commands := "", 0
			for _, m := range block.FindAllStringSubmatch(string(text), -1) {
				lines := strings.Split(strings.TrimRight(m[2], "\n"), "\n")
				if m[1] == "text" {
					compareLines(t, lines, output)
					continue
				}
				output = ""
				for _, line := range lines {
					commands++
					output += performLine(t, root, line)
				}
			}
			if commands < 3 {
				t.Errorf("only %d commands found", commands)
			}
		})
	}
}

// tutorialRoot is a directory with a new program and the files of the checkout, except those that commands write.
func tutorialRoot(t *testing.T) string {
	t.Helper()
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(root, "bin", "chaos"), "./cmd/chaos")
	build.Dir = checkout
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	entries, err := os.ReadDir(checkout)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if written.MatchString(e.Name()) {
			continue
		}
		if err := os.Symlink(filepath.Join(checkout, e.Name()), filepath.Join(root, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// performLine runs a command line of a tutorial, and returns its output.
func performLine(t *testing.T, root, line string) string {
	t.Helper()
	if strings.HasPrefix(line, "make ") || strings.HasPrefix(line, "export PATH=") {
		return ""
	}
	if race.Short() && (!short.MatchString(line) || long.MatchString(line)) {
		return ""
	}
	want := []string{"0"}
	if m := exits.FindStringSubmatch(line); m != nil {
		want = m[1:]
	}
	command := exits.ReplaceAllString(line, "")
	if strings.HasPrefix(command, "chaos test ") {
		command, want = strings.Replace(command, "3m", "20s", 1), []string{"0", "2"}
	}
	for _, program := range programsOf(command) {
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("NOT RUN: %s: needs %s on the PATH", line, program)
			return ""
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if code := fmt.Sprint(cmd.ProcessState.ExitCode()); !slices.Contains(want, code) {
		t.Errorf("%s: exit code %s, want %q\n%s", line, code, want, out.String())
	}
	return out.String()
}

// programsOf are the programs, besides chaos and those that it builds, that a command line needs.
func programsOf(command string) (programs []string) {
	for _, program := range []string{"python3", "node", "java", "javac", "go"} {
		if regexp.MustCompile(`(^|exec:)` + program + ` `).MatchString(command) {
			programs = append(programs, program)
		}
	}
	if strings.Contains(command, "exec:") {
		programs = append(programs, "redis-server")
	}
	return programs
}

// compareLines: output has each line, except for its numbers. Without output nothing was run.
func compareLines(t *testing.T, lines []string, output string) {
	t.Helper()
	plain := digits.ReplaceAllString(output, "0")
	for _, line := range lines {
		if output != "" && !strings.Contains(plain, digits.ReplaceAllString(line, "0")) {
			t.Errorf("the output has no line %q:\n%s", line, output)
		}
	}
}
