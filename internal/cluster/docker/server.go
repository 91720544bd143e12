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
	"github.com/lockchaos/lockchaos/internal/cluster/wallclock"
)

// containerServer is a server in its container, from one start to its exit. It is a
// [process.Process].
type containerServer struct {
	launcher *launcher
	id       string
	name     string
	log      string
	started  time.Time
	process  child.Identity // the server on this machine; zero: not known

	paused   atomic.Bool
	recorded chan struct{} // closed when the engine has seen the exit, or never will
	once     sync.Once
	exited   chan struct{} // closed when the server has exited
	exitErr  error         // valid then
}

// finish records the exit of the server, once.
func (s *containerServer) finish(err error) {
	s.once.Do(func() {
		s.exitErr = err
		close(s.exited)
	})
}

// user is this program's user and group, so that it can remove the servers' files.
func user() string { return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) }

// hostConfig gives a container its directories and network, and no capabilities.
func (l *launcher) hostConfig(dir, logDir string) func(*container.HostConfig) {
	return func(h *container.HostConfig) {
		h.PublishAllPorts = false
		h.NetworkMode = container.NetworkMode(l.run)
		h.CapDrop = []string{"ALL"}
		h.SecurityOpt = []string{"no-new-privileges"}
		h.Mounts = []mount.Mount{
			{Type: mount.TypeBind, Source: dir, Target: dataDir},
			{Type: mount.TypeBind, Source: logDir, Target: logs},
		}
	}
}

// identify finds the server's process on this machine, so that it can be killed without
// the engine. An engine in another PID namespace reports numbers of other processes,
// whose control group does not match.
func (s *containerServer) identify(ctx context.Context) error {
	r, err := s.launcher.engine.ContainerInspect(ctx, s.id, client.ContainerInspectOptions{})
	if err != nil {
		return fmt.Errorf("inspecting container %s: %w: %w", s.name, cluster.ErrEnvironment, err)
	}
	if r.Container.State == nil || !s.contains(r.Container.State.Pid) {
		return nil
	}
	if s.process, err = child.Identify(r.Container.State.Pid); err != nil {
		return nil // it has exited already
	}
	return s.launcher.ledger.Process(s.process.PID)
}

// contains reports whether process pid of this machine is in this container.
func (s *containerServer) contains(pid int) bool {
	if pid <= 0 {
		return false
	}
	groups, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	return err == nil && bytes.Contains(groups, []byte(s.id))
}

// checkClockLibrary checks that every node has loaded the library that sets its clock:
// it is built for this machine's C library, and the image may have another one.
func (l *launcher) checkClockLibrary() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h, s := range l.servers { // order does not matter: all are checked
		if h.Sentinel {
			continue
		}
		maps, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.process.PID), "maps"))
		if err != nil || !bytes.Contains(maps, []byte("/"+wallclock.Library)) {
			return fmt.Errorf("%w: %s does not load the library that sets clocks (%v): use an image with the C library "+
				"of this machine (make docker-image), or backend process", cluster.ErrEnvironment, l.image, err)
		}
	}
	return nil
}

// watch waits for the server's exit, as long as the engine replies.
func (s *containerServer) watch() {
	defer close(s.recorded)
	for {
		ctx, cancel := context.WithCancel(s.launcher.alive) // an engine that hangs does not close the connection
		w := s.launcher.engine.ContainerWait(ctx, s.id, client.ContainerWaitOptions{})
		var err error
		select {
		case r := <-w.Result:
			cancel()
			s.keepOutput()
			s.finish(fmt.Errorf("exit status %d", r.StatusCode))
			return
		case err = <-w.Error:
		}
		cancel()
		if errdefs.IsNotFound(err) {
			s.finish(fmt.Errorf("container %s was removed: %w", s.name, err))
			return
		}
		select {
		case <-s.launcher.alive.Done():
			s.finish(s.launcher.err())
			return
		case <-s.launcher.open.Done():
			s.finish(err)
			return
		case <-time.After(pingEvery):
		}
	}
}

// keepOutput appends the output of the server since its start to the log. It writes its log itself, except for errors
// in its configuration.
func (s *containerServer) keepOutput() {
	ctx, cancel := context.WithTimeout(context.Background(), pingWait)
	defer cancel()
	out, err := s.launcher.engine.ContainerLogs(ctx, s.id, client.ContainerLogsOptions{
		ShowStdout: true, ShowStderr: true, Since: strconv.FormatInt(s.started.Unix(), 10),
	})
	if err != nil {
		return
	}
	defer out.Close()
	f, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = stdcopy.StdCopy(f, f, io.LimitReader(out, 1<<20))
}

// Wait returns when the server has exited.
func (s *containerServer) Wait() error {
	<-s.exited
	return s.exitErr
}

// Kill sends SIGKILL and returns when the server has exited. It does not use the
// engine if it can: that takes 0.25 s, and the engine kills one server at a time. A
// frozen process exits when it is thawed, which only the engine does.
func (s *containerServer) Kill() error {
	if s.launcher.err() != nil {
		return s.killDirectly()
	}
	select {
	case <-s.exited:
		return nil
	default:
	}
	if s.process.PID > 0 && !s.paused.Load() {
		if err := s.killDirectly(); err != nil {
			return err
		}
		s.finish(errors.New("killed"))
		return nil
	}
	err := s.call(func(ctx context.Context) error {
		_, err := s.launcher.engine.ContainerKill(ctx, s.id, client.ContainerKillOptions{Signal: "SIGKILL"})
		return err
	})
	if errdefs.IsConflict(err) || errdefs.IsNotFound(err) { // it has exited already
		err = nil
	}
	if err != nil {
		return fmt.Errorf("killing container %s: %w", s.name, err)
	}
	timer := time.NewTimer(callWait)
	defer timer.Stop()
	select {
	case <-s.exited:
		return nil
	case <-timer.C:
		return fmt.Errorf("killing container %s: %w: still running after %v", s.name, cluster.ErrEnvironment, callWait)
	}
}

// Stop freezes the server (docker pause: the freezer control group).
func (s *containerServer) Stop() error {
	s.paused.Store(true)
	err := s.freezer("pausing", func(ctx context.Context) error {
		_, err := s.launcher.engine.ContainerPause(ctx, s.id, client.ContainerPauseOptions{})
		return err
	})
	if err != nil {
		s.paused.Store(false)
	}
	return err
}

// Continue thaws it.
func (s *containerServer) Continue() error {
	err := s.freezer("resuming", func(ctx context.Context) error {
		_, err := s.launcher.engine.ContainerUnpause(ctx, s.id, client.ContainerUnpauseOptions{})
		return err
	})
	if err == nil {
		s.paused.Store(false)
	}
	return err
}

// freezer calls do, to which the engine replies with a conflict if the server is in that
// state already, or is not running.
func (s *containerServer) freezer(what string, do func(context.Context) error) error {
	select {
	case <-s.exited:
		return fmt.Errorf("%s container %s: %w", what, s.name, cluster.ErrDown)
	default:
	}
	err := s.call(do)
	if err == nil {
		return nil
	}
	r, inspected := s.launcher.engine.ContainerInspect(context.Background(), s.id, client.ContainerInspectOptions{})
	if inspected == nil && r.Container.State != nil {
		switch {
		case !r.Container.State.Running:
			err = fmt.Errorf("%w: %w", cluster.ErrDown, err)
		case r.Container.State.Paused == (what == "pausing"):
			return nil
		}
	}
	return fmt.Errorf("%s container %s: %w", what, s.name, err)
}

// call bounds a request to the engine.
func (s *containerServer) call(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), callWait)
	defer cancel()
	if err := s.launcher.err(); err != nil {
		return err
	}
	return do(ctx)
}

// killDirectly kills the server without the engine, if its process is known, and returns
// when it has exited.
func (s *containerServer) killDirectly() error {
	if !s.contains(s.process.PID) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), callWait)
	defer cancel()
	if _, err := s.process.Kill(ctx); err != nil {
		return fmt.Errorf("container %s: %w", s.name, err)
	}
	return nil
}
