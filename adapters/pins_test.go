package adapters_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/adapters"
)

// TestPins: a build installs no module without an exact version and, where the package manager has them, a hash, and
// runs no install script of a module.
func TestPins(t *testing.T) {
	checks := map[string]func(*testing.T, adapters.Adapter){
		"Python": pinsOfPython, "JavaScript": pinsOfJavaScript, "Go": pinsOfGo, "Java": pinsOfJava,
	}
	for _, a := range catalog(t) {
		t.Run(a.Library, func(t *testing.T) {
			check := checks[a.Language]
			if check == nil {
				t.Fatalf("no rule for pins of language %s", a.Language)
			}
			check(t, a)
		})
	}
}

func source(t *testing.T, a adapters.Adapter, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.Library, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// commands are the commands of the build that begin with program.
func commands(t *testing.T, a adapters.Adapter, program string) (all [][]string) {
	t.Helper()
	for _, c := range a.Build {
		if c[0] == program {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		t.Errorf("no command of the build is %s", program)
	}
	return all
}

func pinsOfPython(t *testing.T, a adapters.Adapter) {
	for _, c := range commands(t, a, "venv/bin/python") {
		if !slices.Contains(c, "--require-hashes") || !slices.Contains(c, "--only-binary") {
			t.Errorf("%q installs modules without hashes, or with their scripts", c)
		}
		requirement := regexp.MustCompile(`^[a-z0-9-]+==[0-9.]+( ; .*)?\n( +--hash=sha256:[0-9a-f]{64}\n)+$`)
		text := strings.ReplaceAll(source(t, a, c[len(c)-1]), " \\\n", "\n")
		for _, one := range regexp.MustCompile(`(?m)^[^ ].*\n( .*\n)*`).FindAllString(text, -1) {
			if !requirement.MatchString(one) {
				t.Errorf("%s: %q is no module with a version and hashes", c[len(c)-1], one)
			}
		}
	}
	for module := range strings.Lines(source(t, a, "requirements.in")) {
		if text := source(t, a, "requirements.txt"); !strings.Contains(text, strings.TrimSpace(module)+" ") {
			t.Errorf("requirements.txt does not have %s", module)
		}
	}
}

func pinsOfJavaScript(t *testing.T, a adapters.Adapter) {
	for _, c := range commands(t, a, "npm") {
		if c[1] != "ci" || !slices.Contains(c, "--ignore-scripts") {
			t.Errorf("%q installs other modules than those of package-lock.json, or runs their scripts", c)
		}
	}
	var asked struct{ Dependencies map[string]string }
	var locked struct {
		Packages map[string]struct{ Version, Resolved, Integrity string }
	}
	for name, to := range map[string]any{"package.json": &asked, "package-lock.json": &locked} {
		if err := json.Unmarshal([]byte(source(t, a, name)), to); err != nil {
			t.Fatal(err)
		}
	}
	for name, p := range locked.Packages {
		if name != "" && (p.Version == "" || p.Integrity == "" || p.Resolved != "") {
			t.Errorf("%s: %+v needs a version and a hash, and no address", name, p)
		}
	}
	for name, version := range asked.Dependencies {
		if got := locked.Packages["node_modules/"+name].Version; got != version {
			t.Errorf("package-lock.json has %s %q, and package.json %s", name, got, version)
		}
	}
}

func pinsOfGo(t *testing.T, a adapters.Adapter) {
	commands(t, a, "go")
	sums := source(t, a, "go.sum")
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+ v\S+)`).FindAllStringSubmatch(source(t, a, "go.mod.txt"), -1) {
		if !strings.Contains(sums, m[1]+" h1:") || !strings.Contains(sums, m[1]+"/go.mod h1:") {
			t.Errorf("go.sum does not have %s", m[1])
		}
	}
}

func pinsOfJava(t *testing.T, a adapters.Adapter) {
	for _, c := range commands(t, a, "mvn") {
		if !slices.Contains(c, "--strict-checksums") {
			t.Errorf("%q accepts files that do not match their checksums", c)
		}
	}
	for _, m := range regexp.MustCompile(`<version>(.*)</version>`).FindAllStringSubmatch(source(t, a, "pom.xml"), -1) {
		if strings.ContainsAny(m[1], "[](),") || strings.HasSuffix(m[1], "SNAPSHOT") {
			t.Errorf("pom.xml has the version %s, which may become another one", m[1])
		}
	}
}

// TestBuildIsReadOnly: a Go build must not add modules to go.mod or sums to go.sum.
func TestBuildIsReadOnly(t *testing.T) {
	t.Setenv("LOCKCHAOS_ADAPTERS", t.TempDir())
	t.Setenv("GOFLAGS", "-mod=mod")
	a, err := adapters.Find("redsync")
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	a.Needs, a.Build = nil, [][]string{{"sh", "-c", "echo flags: $GOFLAGS; ls"}}
	if err := a.Make(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "flags: -mod=readonly\n") || !strings.Contains(got, "go.sum\n") {
		t.Errorf("a build has\n%s", got)
	}
}
