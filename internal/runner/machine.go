package runner

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// versions are the versions of this program and of everything that may explain a run later.
func versions(program string) map[string]string {
	v := map[string]string{"chaos": program, "go": runtime.Version(), "os": runtime.GOOS + "/" + runtime.GOARCH}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		v["kernel"] = strings.TrimSpace(string(text))
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/redis/go-redis/v9", "github.com/anishathalye/porcupine":
			v[d.Path[strings.Index(d.Path, "/")+1:]] = d.Version
		}
	}
	return v
}

// machine describes the machine that a run was made on.
func machine() map[string]string {
	m := map[string]string{"cpus": strconv.Itoa(runtime.NumCPU())}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if total, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			m["memory"] = strings.TrimSpace(total)
		}
	}
	return m
}
