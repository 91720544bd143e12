package machine

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/docker"
	"github.com/lockchaos/lockchaos/internal/cluster/installed"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/wallclock"
)

func otherFeatures() []feature {
	return []feature{{
		"server clocks", "faults clock-jump and clock-drift (a library preloaded into the servers)",
		"a C compiler (Debian, Ubuntu: apt-get install gcc libc6-dev; Alpine: apk add build-base) or libfaketime",
		func(context.Context) (string, error) {
			by, missing := wallclock.Method()
			return lacking(missing, by)
		},
	}, {
		"libfaketime", "server clocks without a C compiler, at half the throughput",
		"not needed if there is a C compiler; Debian, Ubuntu: apt-get install libfaketime", checkFaketime,
	}, {
		"disks that lose unsynced writes", // a kill alone leaves the page cache
		"faults power-loss and slow-disk (a FUSE file system that drops what was not fsynced, and delays fsyncs)",
		"run as root on a system with FUSE (modprobe fuse; in a container: --device /dev/fuse --cap-add SYS_ADMIN)",
		func(context.Context) (string, error) {
			return lacking(process.MissingDisks(), "FUSE file systems can be mounted")
		},
	}, {
		"ZooKeeper", "topology zookeeper: scenarios zk-*",
		"Debian, Ubuntu: apt-get install default-jre-headless, then scripts/zookeeper (make setup runs it)",
		func(context.Context) (string, error) { return installedVersion(installed.ZooKeeper()) },
	}, {
		"etcd", "topology etcd: scenarios etcd-*",
		"scripts/etcd (make setup runs it), or Debian, Ubuntu: apt-get install etcd-server",
		func(ctx context.Context) (string, error) { return installedVersion(installed.Etcd(ctx)) },
	}, {
		"PostgreSQL", "topology postgres: locks pg-* and sql-*",
		"Debian, Ubuntu: apt-get install postgresql; another program: set LOCKCHAOS_POSTGRES to the path of postgres",
		func(ctx context.Context) (string, error) { return installedVersion(installed.Postgres(ctx)) },
	}, {
		"MariaDB or MySQL", "topology mysql: locks mysql-*, and sql-lease and sql-unique there",
		"Debian, Ubuntu: apt-get install mariadb-server; another program: set LOCKCHAOS_MYSQL to the path of mariadbd",
		func(ctx context.Context) (string, error) { return installedVersion(installed.MySQL(ctx)) },
	}, {
		"network namespaces", "fault unplug on backend process (it disconnects a server from the network)",
		"run as root, with ip and nsenter (Debian, Ubuntu: apt-get install iproute2 util-linux); or use backend docker",
		func(context.Context) (string, error) {
			return lacking(process.MissingNetwork(), "root, ip and nsenter are available")
		},
	}, {
		"Docker", "backend docker: servers in containers, and network partitions (fault unplug)",
		"a Docker engine on this machine that this user may access (Debian, Ubuntu: apt-get install docker.io; " +
			"usermod -aG docker, or root), or DOCKER_HOST", checkDocker,
	}, {
		"Chromium", "this project's tests of the report page; any browser can show a report",
		"Debian, Ubuntu: apt-get install chromium", checkChromium,
	}}
}

// checkFaketime looks for libfaketime, the substitute for our own library without a C compiler.
func checkFaketime(context.Context) (string, error) {
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", errors.New("not installed")
}

// dockerTimeout bounds a request to the Docker engine.
const dockerTimeout = 5 * time.Second

// checkDocker requests the version of the Docker engine.
func checkDocker(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	version, has, err := docker.Inspect(ctx, docker.Image())
	if missing := (*docker.EngineError)(nil); errors.As(err, &missing) {
		err = errors.New(missing.Short())
	}
	if has {
		return fmt.Sprintf("engine %s, with image %s", version, docker.Image()), err
	}
	return fmt.Sprintf("engine %s, without image %s: a run pulls it; without a registry: make docker-image, and set %s=%s",
		version, docker.Image(), docker.ImageVariable, docker.LocalImage), err
}

func checkChromium(context.Context) (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("not on the PATH")
}
