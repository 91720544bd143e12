package deploy

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The tests of the parts of a release compile everything: make test-release runs them, every night.
var release = flag.Bool("release", false, "build the image and an archive of a release, and try them")

// TestDockerfile builds the image with the engine that is there, and loses a lock in a container of it.
func TestDockerfile(t *testing.T) {
	if !*release {
		t.Skip("SKIPPED: compiles everything; make test-release runs it")
	}
	docker := exec.CommandContext(t.Context(), "docker", "version")
	if err := docker.Run(); err != nil {
		t.Skip("NOT RUN: no Docker engine: scripts/with-docker starts one:", err)
	}
	m := newMachine(t)
	m.path = os.Getenv("PATH")
	m.run("..", "bash", "scripts/check-dockerfile")
}

// TestSnapshot builds one archive of a release: its program runs, and its bill of materials names its parts.
func TestSnapshot(t *testing.T) {
	if !*release {
		t.Skip("SKIPPED: compiles everything; make test-release runs it")
	}
	m := newMachine(t)
	m.path = os.Getenv("PATH")
	dist := filepath.Join(t.TempDir(), "dist")
	m.run("..", "bash", `scripts/snapshot "$DIST" linux/"$(go env GOARCH)"
cd "$DIST"
sha256sum --check --strict checksums.txt
[ "$(wc -l <checksums.txt)" -eq 2 ]
tar xzf ./*.tar.gz
./*/chaos list scenarios | grep -q failover
[ -s ./*/README.md ] && [ -s ./*/CHANGELOG.md ] && [ -s ./*/LICENSE ] && [ -s ./*/THIRD_PARTY_LICENSES.txt ]
jq -e '.bomFormat == "CycloneDX" and ([.components[].name] | index("std") and index("github.com/redis/go-redis/v9"))' ./*.cdx.json`,
		"DIST="+dist)
}
