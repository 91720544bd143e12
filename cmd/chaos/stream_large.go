package main

import (
	"context"
	"os"
	"strings"

	"github.com/lockchaos/lockchaos/internal/rundir"
)

// largeHistory is the size in bytes above which chaos check judges a file as a stream, if that has the same verdict.
const largeHistory = 256 << 20

// judgeLarge judges a regular file of more than o.large bytes as a stream, which takes little memory, unless the whole
// check may have another verdict. In one line on standard error it says that, or why it did not. An error is left to
// the whole check.
func judgeLarge(s streams, path string, o checkOptions) (j judged, done bool) {
	file, _, _ := historyFile(path)
	info, err := os.Stat(file)
	if path == "-" || err != nil || !info.Mode().IsRegular() || info.Size() <= o.large {
		return j, false
	}
	why := needsWhole(path, o)
	if why == "" {
		if j, why, err = judgeStream(context.Background(), s, path, o); err != nil {
			return j, false
		}
	}
	if why != "" {
		s.note("%s has %d MiB and is judged in memory: %s", file, info.Size()>>20, why)
		return j, false
	}
	s.note("%s is large and was judged as a stream: the whole check (--stream=false) has the same verdict", file)
	return j, true
}

// needsWhole says why a stream cannot have the verdict of the whole check on the history at path; "": it may have it.
func needsWhole(path string, o checkOptions) string {
	switch _, err := rundir.Open(path); {
	case len(o.properties) == 0:
		return "a stream cannot judge " + strings.Join(notStreamed(), ", ") + " (--property NAME: only some properties)"
	case streamable(o) != nil:
		return streamable(o).Error()
	case err == nil:
		return "a stream does not read the samples of a run"
	case len(o.permits) > 0:
		return "--permits may name a key that the history lacks"
	}
	return ""
}
