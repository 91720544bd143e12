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

// checkClocks looks for a way to set the wall clocks of servers.
func checkClocks() diagnosis {
	d := diagnosis{
		Feature: "server clocks", UsedFor: "faults clock-jump and clock-drift (a library preloaded into the servers)",
		Fix: "a C compiler (Debian, Ubuntu: apt-get install gcc libc6-dev; Alpine: apk add build-base) or libfaketime",
	}
	by, missing := process.ClockMethod()
	return d.lacking(missing, by)
}

// checkFaketime looks for libfaketime, the substitute for checkClocks without a C compiler.
func checkFaketime() diagnosis {
	d := diagnosis{
		Feature: "libfaketime", UsedFor: "server clocks without a C compiler, at half the throughput",
		Fix: "not needed if there is a C compiler; Debian, Ubuntu: apt-get install libfaketime", Detail: "not installed",
	}
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return d.result(nil, found[0])
		}
	}
	return d
}

// checkDisks looks for what simulates a power loss: a kill alone leaves the page cache.
func checkDisks() diagnosis {
	d := diagnosis{
		Feature: "disks that lose unsynced writes",
		UsedFor: "faults power-loss and slow-disk (a FUSE file system that drops what was not fsynced, and delays fsyncs)",
		Fix:     "run as root on a system with FUSE (modprobe fuse; in a container: --device /dev/fuse --cap-add SYS_ADMIN)",
	}
	return d.lacking(process.MissingDisks(), "FUSE file systems can be mounted")
}

// checkZooKeeper looks for Java and the jar files of a ZooKeeper server.
func checkZooKeeper() diagnosis {
	d := diagnosis{
		Feature: "ZooKeeper", UsedFor: "topology zookeeper: scenarios zk-*",
		Fix: "Debian, Ubuntu: apt-get install default-jre-headless, then scripts/zookeeper (make setup runs it)",
	}
	version, err := process.ZooKeeperVersion()
	return d.result(err, "version "+version)
}

// checkEtcd looks for an etcd server.
func checkEtcd(ctx context.Context) diagnosis {
	d := diagnosis{
		Feature: "etcd", UsedFor: "topology etcd: scenarios etcd-*",
		Fix: "scripts/etcd (make setup runs it), or Debian, Ubuntu: apt-get install etcd-server",
	}
	version, err := process.EtcdVersion(ctx)
	return d.result(err, "version "+version)
}

// lacking completes a diagnosis with what is missing, or else with what was found.
func (d diagnosis) lacking(missing, found string) diagnosis {
	if missing != "" {
		return d.result(errors.New(missing), "")
	}
	return d.result(nil, found)
}

// checkNamespaces looks for what disconnects servers from the network.
func checkNamespaces() diagnosis {
	d := diagnosis{
		Feature: "network namespaces", UsedFor: "fault unplug on backend process (it disconnects a server from the network)",
		Fix: "run as root, with ip and nsenter (Debian, Ubuntu: apt-get install iproute2 util-linux); or use backend docker",
	}
	return d.lacking(process.MissingNetwork(), "root, ip and nsenter are available")
}

// dockerTimeout bounds a request to the Docker engine.
const dockerTimeout = 5 * time.Second

// checkDocker requests the version of the Docker engine.
func checkDocker(ctx context.Context) diagnosis {
	d := diagnosis{
		Feature: "Docker", UsedFor: "backend docker: servers in containers, and network partitions (fault unplug)",
		Fix: "a Docker engine on this machine that this user may access (Debian, Ubuntu: apt-get install docker.io; " +
			"usermod -aG docker, or root), or DOCKER_HOST",
	}
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	version, has, err := docker.Inspect(ctx, docker.Image())
	if missing := (*docker.EngineError)(nil); errors.As(err, &missing) {
		err = errors.New(missing.Short())
	}
	found := fmt.Sprintf("engine %s, with image %s", version, docker.Image())
	if !has {
		found = fmt.Sprintf("engine %s, without image %s: a run pulls it; without a registry: make docker-image, and set "+
			"%s=%s", version, docker.Image(), docker.ImageVariable, docker.LocalImage)
	}
	return d.result(err, found)
}
