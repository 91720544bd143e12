package style

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What a program that imports package lock alone has to list in its go.mod and go.sum.
const (
	lockRequirements = 4  // indirect ones, besides this module
	lockSums         = 22 // lines of go.sum
)

// simtestPackages is how many packages of others, the standard library's included, a test with simtest links at most.
// Packages of this module do not count: parts of it may get packages of their own.
const simtestPackages = 220

// TestSimtestLinksFewPackages: a user's test is built from the simulation alone, without real servers or their clients.
func TestSimtestLinksFewPackages(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./simtest")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	others := 0
	for _, name := range strings.Fields(string(out)) {
		if !strings.HasPrefix(name, "github.com/lockchaos/") {
			others++
		}
		for _, part := range []string{"/moby/", "/grpc", "/etcd", "/go-zookeeper/", "/pgx/", "/go-fuse/", "/gonum"} {
			if strings.Contains(name, part) {
				t.Errorf("simtest links %s", name)
			}
		}
	}
	if others > simtestPackages {
		t.Errorf("%d packages of others, more than %d:\n%s", others, simtestPackages, out)
	}
}

// TestLockNeedsFewModules makes a module that imports package lock and nothing else, as a user would.
func TestLockNeedsFewModules(t *testing.T) {
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module example.com/user\n\ngo 1.26.0\n\nrequire github.com/lockchaos/lockchaos v0.0.0\n\n" +
			"replace github.com/lockchaos/lockchaos => " + here + "\n",
		"main.go": "package main\n\nimport _ \"github.com/lockchaos/lockchaos/lock\"\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tidy := exec.Command("go", "mod", "tidy")
	tidy.Dir = dir
	tidy.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
	if out, err := tidy.CombinedOutput(); err != nil {
		t.Fatalf("go mod tidy: %v\n%s", err, out)
	}
	mod, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
	sum, _ := os.ReadFile(filepath.Join(dir, "go.sum"))
	if n := strings.Count(string(mod), "// indirect"); n > lockRequirements {
		t.Errorf("%d indirect requirements, more than %d:\n%s", n, lockRequirements, mod)
	}
	if n := strings.Count(string(sum), "\n"); n > lockSums {
		t.Errorf("%d lines of go.sum, more than %d:\n%s", n, lockSums, sum)
	}
}
