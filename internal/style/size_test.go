package style

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxFileSize keeps programs and recordings out of the repository: git keeps each version of a file forever.
const maxFileSize = 1 << 20

func TestTrackedFilesAreSmall(t *testing.T) {
	list, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("SKIPPED: only in a git checkout: %v", err)
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(root, path)); err == nil && info.Size() > maxFileSize {
			t.Errorf("%s has %d bytes; at most %d are allowed", path, info.Size(), maxFileSize)
		}
	}
}
