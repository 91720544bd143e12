package locks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/golden"
)

// TestPromises: the promises of each lock are in a file. The outcomes that a scenario expects follow from the promises
// of its lock, so no scenario fails if a lock no longer states one, and the property is no longer judged.
func TestPromises(t *testing.T) {
	var b strings.Builder
	for _, row := range Catalog() {
		fmt.Fprintf(&b, "%s:\n", row.Name)
		for _, name := range row.Can.Names() {
			fmt.Fprintf(&b, "  %s\n", name)
		}
	}
	golden.File(t, "testdata/promises.txt", b.String())
}
