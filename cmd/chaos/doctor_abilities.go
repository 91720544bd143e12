package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/cluster/docker"
	"github.com/lockchaos/lockchaos/cluster/process"
)

// clocksFound looks for what sets the wall clocks of servers.
func clocksFound() finding {
	f := finding{
		Ability: "clocks of servers", For: "faults clock-jump and clock-drift: a library that servers are started with",
		Mend: "a C compiler; Debian, Ubuntu: apt-get install gcc libc6-dev; Alpine: apk add build-base; or libfaketime",
	}
	by, missing := process.ClocksBy()
	return f.lacking(missing, by)
}

// faketimeFound looks for libfaketime, which sets clocks where nothing can be built.
func faketimeFound() finding {
	f := finding{
		Ability: "libfaketime", For: "clocks of servers where there is no C compiler; it costs half of their throughput",
		Mend: "not needed beside a compiler; Debian, Ubuntu: apt-get install libfaketime",
	}
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			f.OK, f.Detail = true, found[0]
			return f
		}
	}
	f.Detail = "not here"
	return f
}

// disksFound looks for what makes a power cut out of a kill.
func disksFound() finding {
	f := finding{
		Ability: "disks that forget", For: "fault power-loss: a FUSE file system that loses what was not fsynced",
		Mend: "run as root on a system with FUSE (modprobe fuse; in a container: --device /dev/fuse --cap-add SYS_ADMIN)",
	}
	return f.lacking(process.MissingDisks(), "FUSE can be mounted")
}

// lacking fills in what was found out.
func (f finding) lacking(missing, found string) finding {
	f.OK, f.Detail = missing == "", missing
	if f.OK {
		f.Detail = found
	}
	return f
}

// tryWait bounds trying out a program.
const tryWait = 5 * time.Second

// namespacesFound tries to make a network namespace.
func namespacesFound(ctx context.Context) finding {
	f := finding{
		Ability: "network namespaces", For: "nothing yet: partitions are made by gates, which need no rights",
		Mend: "root, or unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1)",
	}
	return f.try(ctx, "unshare -n works", "unshare", "-n", "true")
}

// dockerFound asks the Docker engine for its version.
func dockerFound(ctx context.Context) finding {
	f := finding{
		Ability: "Docker", For: "backend docker: servers in containers, partitions by the network (fault unplug)",
		Mend: "an engine of this machine that this user may talk to (Debian, Ubuntu: apt-get install docker.io; " +
			"usermod -aG docker, or root), or DOCKER_HOST",
	}
	ctx, cancel := context.WithTimeout(ctx, tryWait)
	defer cancel()
	version, has, err := docker.Look(ctx, docker.Image())
	f.OK, f.Detail = err == nil, fmt.Sprintf("engine %s, with image %s", version, docker.Image())
	if !has {
		f.Detail = fmt.Sprintf("engine %s, without image %s: a run pulls it; without a registry: make docker-image, "+
			"and %s=%s", version, docker.Image(), docker.ImageVariable, docker.LocalImage)
	}
	if missing := (*docker.EngineError)(nil); errors.As(err, &missing) {
		f.Detail = missing.Short()
	}
	return f
}

// try runs a command and puts the last line of what it says behind what.
func (f finding) try(ctx context.Context, what, name string, args ...string) finding {
	ctx, cancel := context.WithTimeout(ctx, tryWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	said := lines[len(lines)-1]
	f.OK, f.Detail = err == nil, strings.TrimSpace(what+" "+said)
	if err != nil {
		f.Detail = strings.TrimSpace(fmt.Sprintf("%v %s", err, said))
	}
	return f
}
