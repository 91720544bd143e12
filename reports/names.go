package reports

import (
	"fmt"
	"strings"
)

// clientName is how every format names a client.
func clientName(c int) string { return fmt.Sprintf("client %d", c) }

// targetName is the target of a fault for people: "client:3" is client 3.
func targetName(target string) string {
	if c, ok := strings.CutPrefix(target, "client:"); ok {
		return "client " + c
	}
	return target
}

// quote puts a name in backquotes, which HTML and Markdown turn into code. A
// backquote in the name, which a hostile key may have, becomes an apostrophe. A lock
// without a name, as in some histories of other suites, is "the lock".
func quote(name string) string {
	if name == "" {
		return "the lock"
	}
	return "`" + strings.NewReplacer("`", "'", "\n", "\uFFFD", "\r", "\uFFFD").Replace(name) + "`"
}
