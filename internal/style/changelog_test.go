package style

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
)

// sinceUnreleased are words that compare with a state that no user has seen.
var sinceUnreleased = regexp.MustCompile(`(?i)\b(no longer|used to|before, |so far it|until now|anymore)\b`)

// TestChangelogSaysWhatUsersGet: before the first release the changelog lists the features, with the numbers of
// properties and libraries, and no change between two states of the repository.
func TestChangelogSaysWhatUsersGet(t *testing.T) {
	text := read(t, "CHANGELOG.md")
	for i, line := range strings.Split(text, "\n") {
		if word := sinceUnreleased.FindString(line); word != "" {
			t.Errorf("CHANGELOG.md:%d: %q: nothing has been released that this could be compared with", i+1, word)
		}
	}
	libraries, err := adapters.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("* %d properties:", len(checker.Catalog())), fmt.Sprintf("locks of %d libraries", len(libraries)),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("CHANGELOG.md does not say %q, the number of the catalog", want)
		}
	}
}
