package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/lockchaos/lockchaos/cluster"
)

// box is one stay of a server in its container, from its start to its end. It
// is a [process.Process].
type box struct {
	ground *ground
	id     string
	name   string
	log    string
	began  time.Time
	pid    int // of the server, as this machine counts; 0: not known

	ended chan struct{} // closed when the server has ended
	how   error         // valid then
}

// user is this program's own, so that what servers write can be removed by it.
func user() string { return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) }

// hostConfig gives a container its folders and network, and no rights beyond.
func (g *ground) hostConfig(dir, logDir string) func(*container.HostConfig) {
	return func(h *container.HostConfig) {
		h.PublishAllPorts = false
		h.NetworkMode = container.NetworkMode(g.run)
		h.CapDrop = []string{"ALL"}
		h.SecurityOpt = []string{"no-new-privileges"}
		h.Mounts = []mount.Mount{
			{Type: mount.TypeBind, Source: dir, Target: folder},
			{Type: mount.TypeBind, Source: logDir, Target: logs},
		}
	}
}

// identify finds out which process of this machine the server is, so that it can
// be ended without the engine. An engine that counts processes for itself alone
// names others: that is seen by the control group.
func (b *box) identify(ctx context.Context) error {
	r, err := b.ground.engine.ContainerInspect(ctx, b.id, client.ContainerInspectOptions{})
	if err != nil {
		return fmt.Errorf("inspecting container %s: %w: %w", b.name, cluster.ErrEnvironment, err)
	}
	if r.Container.State == nil || !b.is(r.Container.State.Pid) {
		return nil
	}
	b.pid = r.Container.State.Pid
	return b.ground.ledger.Process(b.pid)
}

// is says whether process pid of this machine is in this very container.
func (b *box) is(pid int) bool {
	if pid <= 0 {
		return false
	}
	groups, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	return err == nil && bytes.Contains(groups, []byte(b.id))
}

// await waits for the server's end, as long as there is an engine to tell of it.
func (b *box) await() {
	defer close(b.ended)
	for {
		ctx, cancel := context.WithCancel(context.Background())
		w := b.ground.engine.ContainerWait(ctx, b.id, client.ContainerWaitOptions{})
		var err error
		select {
		case r := <-w.Result:
			cancel()
			b.how = fmt.Errorf("exit status %d", r.StatusCode)
			b.keepOutput()
			return
		case err = <-w.Error:
		}
		cancel()
		if errdefs.IsNotFound(err) {
			b.how = fmt.Errorf("container %s was removed: %w", b.name, err)
			return
		}
		select {
		case <-b.ground.gone:
			b.how = b.ground.lost()
			return
		case <-b.ground.over:
			b.how = err
			return
		case <-time.After(pingEvery):
		}
	}
}

// keepOutput appends to the log what the server printed since it began: it writes its
// log itself, but for what it says of a configuration that it cannot read.
func (b *box) keepOutput() {
	ctx, cancel := context.WithTimeout(context.Background(), pingWait)
	defer cancel()
	out, err := b.ground.engine.ContainerLogs(ctx, b.id, client.ContainerLogsOptions{
		ShowStdout: true, ShowStderr: true, Since: strconv.FormatInt(b.began.Unix(), 10),
	})
	if err != nil {
		return
	}
	defer out.Close()
	f, err := os.OpenFile(b.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = stdcopy.StdCopy(f, f, io.LimitReader(out, 1<<20))
}

// Wait returns when the server has ended.
func (b *box) Wait() error {
	<-b.ended
	return b.how
}

// Kill ends the server with SIGKILL and returns when it is gone. Without an engine
// it does so by itself.
func (b *box) Kill() error {
	if b.ground.lost() != nil {
		return b.end()
	}
	select {
	case <-b.ended:
		return nil
	default:
	}
	err := b.call(func(ctx context.Context) error {
		_, err := b.ground.engine.ContainerKill(ctx, b.id, client.ContainerKillOptions{Signal: "SIGKILL"})
		return err
	})
	if errdefs.IsConflict(err) || errdefs.IsNotFound(err) { // it has ended already
		err = nil
	}
	if err != nil {
		return fmt.Errorf("killing container %s: %w", b.name, err)
	}
	timer := time.NewTimer(callWait)
	defer timer.Stop()
	select {
	case <-b.ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("killing container %s: %w: still there after %v", b.name, cluster.ErrEnvironment, callWait)
	}
}

// Stop freezes the server (docker pause: the freezer control group).
func (b *box) Stop() error {
	return b.freezer("pausing", func(ctx context.Context) error {
		_, err := b.ground.engine.ContainerPause(ctx, b.id, client.ContainerPauseOptions{})
		return err
	})
}

// Continue lets it go on.
func (b *box) Continue() error {
	return b.freezer("resuming", func(ctx context.Context) error {
		_, err := b.ground.engine.ContainerUnpause(ctx, b.id, client.ContainerUnpauseOptions{})
		return err
	})
}

// freezer carries out what is wanted, which the engine refuses as a conflict if it
// is so already, or if the server does not run.
func (b *box) freezer(what string, want func(context.Context) error) error {
	select {
	case <-b.ended:
		return fmt.Errorf("%s container %s: %w", what, b.name, cluster.ErrDown)
	default:
	}
	err := b.call(want)
	if err == nil {
		return nil
	}
	r, inspected := b.ground.engine.ContainerInspect(context.Background(), b.id, client.ContainerInspectOptions{})
	if inspected == nil && r.Container.State != nil {
		switch {
		case !r.Container.State.Running:
			err = fmt.Errorf("%w: %w", cluster.ErrDown, err)
		case r.Container.State.Paused == (what == "pausing"):
			return nil
		}
	}
	return fmt.Errorf("%s container %s: %w", what, b.name, err)
}

// call asks the engine something, within bounds.
func (b *box) call(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), callWait)
	defer cancel()
	if err := b.ground.lost(); err != nil {
		return err
	}
	return do(ctx)
}

// end kills the server without an engine, if it still is that process.
func (b *box) end() error {
	if !b.is(b.pid) {
		return nil
	}
	if err := syscall.Kill(b.pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("killing process %d of container %s: %w", b.pid, b.name, err)
	}
	return nil
}
