package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

// containerServer is one stay of a server in its container, from its start to its end. It
// is a [process.Process].
type containerServer struct {
	launcher *launcher
	id       string
	name     string
	log      string
	started  time.Time
	process  child.Identity // the server on this machine; zero: not known

	paused   atomic.Bool
	recorded chan struct{} // closed when the engine knows of the end, or never will
	once     sync.Once
	ended    chan struct{} // closed when the server has ended
	exitErr  error         // valid then
}

// finish says once that the server has ended, and how.
func (b *containerServer) finish(how error) {
	b.once.Do(func() {
		b.exitErr = how
		close(b.ended)
	})
}

// user is this program's own, so that what servers write can be removed by it.
func user() string { return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) }

// hostConfig gives a container its folders and network, and no rights beyond.
func (g *launcher) hostConfig(dir, logDir string) func(*container.HostConfig) {
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
func (b *containerServer) identify(ctx context.Context) error {
	r, err := b.launcher.engine.ContainerInspect(ctx, b.id, client.ContainerInspectOptions{})
	if err != nil {
		return fmt.Errorf("inspecting container %s: %w: %w", b.name, cluster.ErrEnvironment, err)
	}
	if r.Container.State == nil || !b.contains(r.Container.State.Pid) {
		return nil
	}
	if b.process, err = child.Identify(r.Container.State.Pid); err != nil {
		return nil // it has exited already
	}
	return b.launcher.ledger.Process(b.process.PID)
}

// contains says whether process pid of this machine is in this very container.
func (b *containerServer) contains(pid int) bool {
	if pid <= 0 {
		return false
	}
	groups, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	return err == nil && bytes.Contains(groups, []byte(b.id))
}

// checkClockLibrary makes sure that every node has loaded the library that sets its clock: it
// is built for this machine's C library, and the image may have another one.
func (g *launcher) checkClockLibrary() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for h, b := range g.servers { // order does not matter: all are looked at
		if h.Sentinel {
			continue
		}
		maps, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(b.process.PID), "maps"))
		if err != nil || !bytes.Contains(maps, []byte("/"+process.Shim)) {
			return fmt.Errorf("%w: %s does not load the library that sets clocks (%v): take an image with the C library "+
				"of this machine (make docker-image), or backend process", cluster.ErrEnvironment, g.image, err)
		}
	}
	return nil
}

// watch waits for the server's end, as long as there is an engine to tell of it.
func (b *containerServer) watch() {
	defer close(b.recorded)
	engine, leave := context.WithCancel(context.Background())
	defer leave()
	go func() {
		select {
		case <-b.launcher.failed: // an engine that hangs breaks no connection
			leave()
		case <-engine.Done():
		}
	}()
	for {
		ctx, cancel := context.WithCancel(engine)
		w := b.launcher.engine.ContainerWait(ctx, b.id, client.ContainerWaitOptions{})
		var err error
		select {
		case r := <-w.Result:
			cancel()
			b.keepOutput()
			b.finish(fmt.Errorf("exit status %d", r.StatusCode))
			return
		case err = <-w.Error:
		}
		cancel()
		if errdefs.IsNotFound(err) {
			b.finish(fmt.Errorf("container %s was removed: %w", b.name, err))
			return
		}
		select {
		case <-b.launcher.failed:
			b.finish(b.launcher.err())
			return
		case <-b.launcher.closing:
			b.finish(err)
			return
		case <-time.After(pingEvery):
		}
	}
}

// keepOutput appends to the log what the server printed since it began: it writes its
// log itself, but for what it says of a configuration that it cannot read.
func (b *containerServer) keepOutput() {
	ctx, cancel := context.WithTimeout(context.Background(), pingWait)
	defer cancel()
	out, err := b.launcher.engine.ContainerLogs(ctx, b.id, client.ContainerLogsOptions{
		ShowStdout: true, ShowStderr: true, Since: strconv.FormatInt(b.started.Unix(), 10),
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
func (b *containerServer) Wait() error {
	<-b.ended
	return b.exitErr
}

// Kill ends the server with SIGKILL and returns when it is gone. It does so by
// itself if it can: the engine takes a quarter of a second for it, and several servers that
// are to die at once would die one after the other. A frozen process dies when it
// thaws, which is the engine's work.
func (b *containerServer) Kill() error {
	if b.launcher.err() != nil {
		return b.killDirectly()
	}
	select {
	case <-b.ended:
		return nil
	default:
	}
	if b.process.PID > 0 && !b.paused.Load() {
		if err := b.killDirectly(); err != nil {
			return err
		}
		b.finish(errors.New("killed"))
		return nil
	}
	err := b.call(func(ctx context.Context) error {
		_, err := b.launcher.engine.ContainerKill(ctx, b.id, client.ContainerKillOptions{Signal: "SIGKILL"})
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
func (b *containerServer) Stop() error {
	b.paused.Store(true)
	err := b.freezer("pausing", func(ctx context.Context) error {
		_, err := b.launcher.engine.ContainerPause(ctx, b.id, client.ContainerPauseOptions{})
		return err
	})
	if err != nil {
		b.paused.Store(false)
	}
	return err
}

// Continue lets it go on.
func (b *containerServer) Continue() error {
	err := b.freezer("resuming", func(ctx context.Context) error {
		_, err := b.launcher.engine.ContainerUnpause(ctx, b.id, client.ContainerUnpauseOptions{})
		return err
	})
	if err == nil {
		b.paused.Store(false)
	}
	return err
}

// freezer carries out what is wanted, which the engine refuses as a conflict if it
// is so already, or if the server does not run.
func (b *containerServer) freezer(what string, want func(context.Context) error) error {
	select {
	case <-b.ended:
		return fmt.Errorf("%s container %s: %w", what, b.name, cluster.ErrDown)
	default:
	}
	err := b.call(want)
	if err == nil {
		return nil
	}
	r, inspected := b.launcher.engine.ContainerInspect(context.Background(), b.id, client.ContainerInspectOptions{})
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
func (b *containerServer) call(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), callWait)
	defer cancel()
	if err := b.launcher.err(); err != nil {
		return err
	}
	return do(ctx)
}

// killDirectly kills the server without the engine, if it still is that process, and
// returns when it has exited.
func (b *containerServer) killDirectly() error {
	if !b.contains(b.process.PID) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), callWait)
	defer cancel()
	if _, err := b.process.Kill(ctx); err != nil {
		return fmt.Errorf("container %s: %w", b.name, err)
	}
	return nil
}
