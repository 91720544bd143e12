package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/docker"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
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

// tryWait bounds asking an engine.
const tryWait = 5 * time.Second

// namespacesFound looks for what takes servers off their network.
func namespacesFound() finding {
	f := finding{
		Ability: "network namespaces", For: "fault unplug on backend process: servers with cables that can be pulled",
		Mend: "run as root, with ip and nsenter (Debian, Ubuntu: apt-get install iproute2 util-linux); or backend docker",
	}
	return f.lacking(process.MissingCables(), "root, ip and nsenter are here")
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
