package main

import (
	"os"
	"strings"

	"github.com/lockchaos/lockchaos/history/foreign"
)

// largeHistory is the size in bytes above which chaos check suggests --stream.
const largeHistory = 256 << 20

// suggestStream suggests --stream for a regular file of more than limit bytes that a stream can judge. A stream is
// never chosen without the flag: every judgement contains property exercised, of which a stream judges only the
// contention, so it can call a run safe that the whole check leaves inconclusive, also one without faults
// (docs/how-to/formats.md). An unreadable path is left to the check.
func suggestStream(s streams, path string, o checkOptions, limit int64) {
	if path == "-" || streamable(o) != nil {
		return
	}
	file, _, err := historyFile(path)
	if err != nil {
		return
	}
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() <= limit {
		return
	}
	if f, err := os.Open(file); err == nil {
		defer f.Close()
		if _, err := detectHead(f, &foreign.Options{Format: foreign.Format(o.format)}); err != nil {
			return // text, or no history
		}
	}
	s.note("%s has %d MiB, and the whole check keeps every operation in memory; --stream does not, but judges only %s "+
		"(of exercised only the contention), without samples and other readings",
		file, info.Size()>>20, strings.Join(streamedNames(), ", "))
}
